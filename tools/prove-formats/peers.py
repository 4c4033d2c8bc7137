"""What other tools make of model files: log-probs, greedy tokens, and texts to tokens and back.

usage: peers.py JOBS.json OUT.json

JOBS.json is a list of jobs, done one after another, each with `name` and `kind`:
  quantize      writes the GGUF file `to` from `path`, by llama.cpp, in the type `type` (F32 widens it)
  transformers  the model directory `path`, in float32; with `adapter`, that PEFT directory on it
  llama         the GGUF file `path`, by llama.cpp, with keys and values in float32
Models get `cases`: {sequences, prompts, new_tokens, texts}. OUT.json holds an answer for each model by its name:
{logprobs, greedy, greedy_texts, tokens}, the last two null where the model has no tokenizer.
"""
import ctypes
import gc
import json
import os
import sys

THREADS = 2


def main():
    quiet_llama()
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    answers = {}
    for job in jobs:
        answer = KINDS[job["kind"]](job)
        if answer is not None:
            answers[job["name"]] = answer
        gc.collect()
    with open(sys.argv[2], "w") as file:
        json.dump({"versions": versions(), "answers": answers}, file)


def versions():
    import llama_cpp
    import peft
    import torch
    import transformers

    modules = {"llama-cpp-python": llama_cpp, "peft": peft, "torch": torch, "transformers": transformers}
    return {name: module.__version__ for name, module in modules.items()}


def quiet_llama():
    import llama_cpp

    global quiet  # the library keeps the pointer
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))


def quantize(job):
    import llama_cpp

    types = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "BF16": 32}  # enum llama_ftype
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = types[job["type"]]
    params.allow_requantize = True
    params.nthread = THREADS
    code = llama_cpp.llama_model_quantize(job["path"].encode(), job["to"].encode(), ctypes.byref(params))
    if code != 0:
        raise RuntimeError(f"llama_model_quantize of {job['name']}: code {code}")


def run_transformers(job):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(THREADS)
    model = AutoModelForCausalLM.from_pretrained(job["path"], dtype=torch.float32, attn_implementation="eager")
    if "adapter" in job:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, job["adapter"])
    model.eval()
    has_tokenizer = os.path.exists(os.path.join(job["path"], "tokenizer.json"))
    tokenizer = AutoTokenizer.from_pretrained(job["path"]) if has_tokenizer else None

    @torch.no_grad()
    def last_logits(ids):
        return model(torch.tensor([ids])).logits[0]

    def logprobs(ids):
        rows = torch.log_softmax(last_logits(ids)[:-1].double(), -1)
        return rows.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()

    def greedy(ids, count):
        ids = list(ids)
        for _ in range(count):  # without a cache: the plain definition
            ids.append(int(last_logits(ids)[-1].argmax()))
        return ids[-count:]

    return answer(
        job["cases"],
        logprobs,
        greedy,
        encode=tokenizer and (lambda text: tokenizer.encode(text, add_special_tokens=False)),
        decode=tokenizer and (lambda ids: tokenizer.decode(ids, clean_up_tokenization_spaces=False)),
    )


def run_llama(job):
    import llama_cpp
    import numpy as np

    longest = max(len(ids) for ids in job["cases"]["sequences"] + job["cases"]["prompts"])
    model = llama_cpp.Llama(
        job["path"],
        n_ctx=longest + job["cases"]["new_tokens"],
        n_batch=longest,
        logits_all=True,
        n_threads=THREADS,
        type_k=0,
        type_v=0,
        verbose=False,
    )
    has_tokenizer = model.metadata.get("tokenizer.ggml.model", "no_vocab") not in ("no_vocab", "none")

    def logits(ids):
        model.reset()
        model.eval(ids)
        return np.array(model.scores[: len(ids)], dtype=np.float64)

    def logprobs(ids):
        rows = logits(ids)
        top = rows.max(1)
        norm = top + np.log(np.exp(rows - top[:, None]).sum(1))
        return [float(rows[i, token] - norm[i]) for i, token in enumerate(ids[1:])]

    def greedy(ids, count):
        last, out = logits(ids)[-1], []
        for _ in range(count):
            out.append(int(last.argmax()))
            model.eval(out[-1:])
            last = np.array(model.scores[model.n_tokens - 1])
        return out

    return answer(
        job["cases"],
        logprobs,
        greedy,
        encode=has_tokenizer and (lambda text: model.tokenize(text.encode(), add_bos=False, special=True)),
        decode=has_tokenizer and (lambda ids: model.detokenize(ids, special=True).decode(errors="replace")),
    )


def answer(cases, logprobs, greedy, encode, decode):
    greedy_tokens = [greedy(ids, cases["new_tokens"]) for ids in cases["prompts"]]
    return {
        "logprobs": [logprobs(ids) for ids in cases["sequences"]],
        "greedy": greedy_tokens,
        "greedy_texts": [decode(ids) for ids in greedy_tokens] if decode else None,
        "tokens": [encode(text) for text in cases["texts"]] if encode else None,
    }


KINDS = {"quantize": quantize, "transformers": run_transformers, "llama": run_llama}

if __name__ == "__main__":
    main()
