#!/usr/bin/env python3
"""Conformance client: drives the real tinker SDK against a live Tinker-protocol server.

Prints 'ok NAME', 'FAIL NAME: why' or 'skip NAME: why', one line a check, then 'N passed, N failed[, N skipped]'.
Exit 1 when a check failed.
"""
import argparse
import concurrent.futures as cf
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
import uuid
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from proxy import Fault, Proxy  # noqa: E402

ap = argparse.ArgumentParser()
ap.add_argument("--base-url", required=True)
ap.add_argument("--api-key", default="tml-test")
ap.add_argument("--base-model", required=True)
ap.add_argument("--rank", type=int, default=8)
ap.add_argument("--logprob-tol", type=float, default=1e-3, help="allowed |difference| of log-probabilities (bf16 servers: 0.05)")
ap.add_argument("--timeout", type=float, default=180, help="seconds allowed for one check")
ap.add_argument("--only", default="", help="regular expression: run only the checks whose name matches")
ap.add_argument("--skip", default="", help="regular expression: leave these checks out")
ap.add_argument("--shim-sequence-ids", action="store_true",
                help="add sample_sequence_ids to asample answers that lack them, so that SDK >= 0.26 can sample")
ap.add_argument("--drain", action="store_true", help="before a model is unloaded, step it at learning rate 0: for servers that leak "
                "accumulated gradients into the next model (SkyRL), so that the other checks still mean something")
ap.add_argument("--sgd-step", type=float, default=1e-4, help="size of the plain-gradient step of the gradient checks (bf16 servers: larger)")
ap.add_argument("--load", type=int, default=64, help="concurrent samples in the load check")
ap.add_argument("--list", action="store_true", help="print the names of the checks and stop")
ap.add_argument("--verbose", action="store_true")
args = ap.parse_args()
os.environ.setdefault("TINKER_TELEMETRY", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["TINKER_API_KEY"] = args.api_key
warnings.simplefilter("ignore")

import logging  # noqa: E402

import tinker  # noqa: E402
from tinker import types  # noqa: E402

logging.disable(logging.CRITICAL)
try:
    import torch
except ImportError:
    torch = None
SDK = tuple(int(x) for x in re.findall(r"\d+", tinker.__version__)[:3])
CHECKS, TOL = [], args.logprob_tol


class Skip(Exception):
    pass


def check(name):
    def wrap(fn):
        CHECKS.append((name, fn))
        return fn
    return wrap


def need(cond, why):
    if not cond:
        raise AssertionError(why)


def rv(x):
    return x.result(timeout=args.timeout) if hasattr(x, "result") else x


def fails(fn, *classes, match=None, within=20):
    """fn must raise one of the classes (any Exception when none is named), soon; returns the exception."""
    t = time.monotonic()
    try:
        fn()
    except Exception as e:
        dt = time.monotonic() - t
        need(not classes or isinstance(e, classes), f"raised {type(e).__name__}: {str(e)[:160]}, expected {'/'.join(c.__name__ for c in classes)}")
        need(dt < within, f"the error took {dt:.0f} s (allowed {within})")
        need(match is None or re.search(match, str(e), re.I), f"message {str(e)[:200]!r} does not match {match!r}")
        return e
    raise AssertionError("accepted, an error was expected")


def http(method, path, body=None, headers=None, key=args.api_key, base=None, timeout=60):
    h = {"X-API-Key": key, "Accept": "application/json", **(headers or {})}
    if body is not None and not isinstance(body, bytes):
        body, h = json.dumps(body).encode(), {"Content-Type": "application/json", **h}
    req = urllib.request.Request((base or args.base_url).rstrip("/") + "/api/v1/" + path, data=body, headers=h, method=method)
    try:
        with urllib.request.urlopen(req, timeout=timeout) as r:
            return r.status, dict(r.headers), r.read()
    except urllib.error.HTTPError as e:
        return e.code, dict(e.headers), e.read()


def http_json(method, path, body=None, expect=200, **kw):
    s, _, data = http(method, path, body, **kw)
    need(s == expect, f"{method} {path} answered {s} {data[:160]!r}, expected {expect}")
    return json.loads(data) if data else None


# ---------------------------------------------------------------- shared clients and data
proxy = Proxy(args.base_url, shim_sequence_ids=args.shim_sequence_ids)
BASE = proxy.url
_made, _cache, _lock = [], {}, threading.RLock()


def service(url=None, key=args.api_key, **kw):
    return tinker.ServiceClient(base_url=url or BASE, api_key=key, **kw)


def cached(name, make):
    with _lock:
        if name not in _cache:
            _cache[name] = make()
        return _cache[name]


def svc():
    return cached("svc", service)


def model(seed=7, sc=None, **kw):
    tc = rv((sc or svc()).create_lora_training_client(base_model=args.base_model, rank=kw.pop("rank", args.rank), seed=seed, **kw))
    _made.append(tc.model_id)
    return tc


def unload(tc):
    s, _, data = http("POST", "unload_model", {"model_id": tc.model_id, "type": "unload_model"})
    if s == 200 and tc.model_id in _made:
        _made.remove(tc.model_id)
        rid = json.loads(data).get("request_id")
        if rid:
            poll(rid)
    return s


class fresh:
    """with fresh() as tc: a new LoRA model that is unloaded at the end."""

    def __init__(self, **kw):
        self.kw = kw

    def __enter__(self):
        self.tc = model(**self.kw)
        return self.tc

    def __exit__(self, *a):
        try:
            if args.drain:
                self.tc.optim_step(types.AdamParams(learning_rate=0.0)).result(timeout=20)
        except Exception:
            pass
        try:
            unload(self.tc)
        except Exception:
            pass


def poll(rid, tries=20, headers=None):
    for _ in range(tries):
        s, h, data = http("POST", "retrieve_future", {"request_id": rid, "allow_metadata_only": False}, headers=headers, timeout=60)
        if s == 408 or (s == 200 and b'"try_again"' in data[:200]):
            continue
        return s, h, data
    raise AssertionError("retrieve_future never finished")


def shared_model():
    return cached("tc", model)


def main_sampler():
    return cached("sampler", lambda: rv(shared_model().save_weights_and_get_sampling_client()))


A = [788, 216, 34, 32, 34, 36, 28, 357, 1708]
B = [1885, 33, 28, 34, 35, 36, 30, 37, 38]


def mi(tokens):
    return types.ModelInput.from_ints(list(tokens))


def td(x, dtype="float32", shape=None):
    return types.TensorData(data=list(x), dtype=dtype, shape=shape or [len(list(x))])


def ce(tokens=A, w=None):
    n = len(tokens) - 1
    return types.Datum(model_input=mi(tokens[:-1]), loss_fn_inputs={
        "target_tokens": td(tokens[1:], "int64"), "weights": td([1.0] * n if w is None else w)})


def rl(tokens, q, adv):
    return types.Datum(model_input=mi(tokens[:-1]), loss_fn_inputs={
        "target_tokens": td(tokens[1:], "int64"), "logprobs": td(q), "advantages": td(adv)})


def lps(out, i=0):
    return np.array(out.loss_fn_outputs[i]["logprobs"].data, dtype=np.float64)


def logprobs_of(tc, *seqs):
    out = rv(tc.forward([ce(s) for s in seqs], "cross_entropy"))
    return np.concatenate([lps(out, i) for i in range(len(seqs))])


def loss_sum(out):
    need("loss:sum" in out.metrics, f"metrics has no 'loss:sum' (keys {sorted(out.metrics)[:6]})")
    return out.metrics["loss:sum"]


def close(a, b, tol, what):
    a, b = np.asarray(a, float), np.asarray(b, float)
    need(a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}")
    d = float(np.max(np.abs(a - b))) if a.size else 0.0
    need(np.all(np.isfinite(a)) and d <= tol, f"{what}: largest difference {d:.3g} > {tol:g}")


# eps so large that Adam's first step is plain gradient descent: update = (lr/eps) * gradient
EPS = 1e6
SGD = types.AdamParams(learning_rate=args.sgd_step * EPS, beta1=0.0, beta2=0.0, eps=EPS)
ADAM = types.AdamParams(learning_rate=1e-3, beta1=0.9, beta2=0.95, eps=1e-8)


def moved(loss_fn, data, config=None, params=SGD, extra=(), probe=(A, B)):
    """Log-prob change of the probe sequences after forward_backward(data) (and each of extra) and one step."""
    with fresh() as tc:
        before = logprobs_of(tc, *probe)
        fs = [tc.forward_backward(data, loss_fn, config)] if config else [tc.forward_backward(data, loss_fn)]
        fs += [tc.forward_backward(d, loss_fn) for d in extra]
        st = tc.optim_step(params)
        out = [rv(f) for f in fs][0]
        rv(st)
        return logprobs_of(tc, *probe) - before, out


def same_direction(x, y, scale=1.0, tol=0.05, what=""):
    nx, ny = np.linalg.norm(x), np.linalg.norm(y)
    need(ny > 0 and nx > 0, f"{what}: a step had no effect (norms {nx:.3g}, {ny:.3g})")
    cos, ratio = float(x @ y / nx / ny), float(nx / ny)
    need(cos > 0.99 and abs(ratio / scale - 1) < tol,
         f"{what}: cosine {cos:.4f}, size ratio {ratio:.3f} (expected 1 and {scale:g})")


def sample(s, prompt=A, n=1, **kw):
    extra = {k: kw.pop(k) for k in list(kw) if k in ("include_prompt_logprobs", "topk_prompt_logprobs", "topk_sample_logprobs",
             "target_prompt_logprobs", "prompt_logprobs_last_n", "prompt_alt_tokens_k")}
    return rv(s.sample(prompt=mi(prompt), num_samples=n, sampling_params=types.SamplingParams(**kw), **extra))


def clp(s, tokens):
    """compute_logprobs; a server that leaves out the leading None (SkyRL) is tolerated here, one check reports it."""
    lp = rv(s.compute_logprobs(mi(tokens)))
    return [None] + lp if len(lp) == len(tokens) - 1 and lp[0] is not None else lp


def tokenizer():
    def load():
        from transformers import AutoTokenizer
        try:
            return shared_model().get_tokenizer()
        except Exception:
            return AutoTokenizer.from_pretrained(os.environ.get("CONFORMANCE_TOKENIZER", args.base_model))
    try:
        return cached("tok", load)
    except Exception as e:
        raise Skip(f"no tokenizer can be loaded offline ({type(e).__name__}); set CONFORMANCE_TOKENIZER to a folder")


# ---------------------------------------------------------------- C1-C3 service and model creation
@check("C01-startup-order")
def _():
    p = Proxy(args.base_url)
    try:
        sc = service(p.url)
        getattr(sc, "holder", None)
        t = time.monotonic()
        while not any(c["status"] for c in p.named("session_heartbeat")) and time.monotonic() - t < 14:
            time.sleep(0.2)
        names = [c["path"].split("/api/v1/")[-1] for c in p.calls]
        need(names[0] == "client/config", f"first call is {names[0]}")
        need("create_session" in names and names.index("create_session") <= 3, f"calls {names[:5]}")
        hb = p.named("session_heartbeat")
        need(hb and hb[0]["status"] == 200, "no successful heartbeat within 14 s")
        need(all(c["headers"].get("x-api-key") == args.api_key for c in p.calls), "a call lacks X-API-Key")
    finally:
        p.close()


@check("C01-dynamic-config")
def _():
    s, _, data = http("POST", "client/dynamic_config", {"sdk_version": tinker.__version__})
    need(s in (200, 404), f"answered {s}")
    if s == 200:
        need(isinstance(json.loads(data), dict), "not a JSON object")


@check("C01-wrong-key-is-401")
def _():
    def go():
        sc = service(key="tml-surely-wrong-" + uuid.uuid4().hex)
        rv(sc.create_lora_training_client(base_model=args.base_model, rank=args.rank))
    fails(go, tinker.AuthenticationError)


@check("C02-capabilities")
def _():
    j = http_json("GET", "get_server_capabilities")
    names = [m.get("model_name") for m in j["supported_models"]]
    need(args.base_model in names, f"{args.base_model} is not among {names[:5]}")
    rest = svc().create_rest_client()
    caps = rv(rest.get_server_capabilities()) if hasattr(rest, "get_server_capabilities") else svc().get_server_capabilities()
    need(len(caps.supported_models) >= 1, "the SDK sees no model")


@check("C02-max-context-length")
def _():
    j = http_json("GET", "get_server_capabilities")
    m = [m for m in j["supported_models"] if m.get("model_name") == args.base_model][0]
    need(isinstance(m.get("max_context_length"), int), f"max_context_length is {m.get('max_context_length')!r}")


@check("C02-healthz")
def _():
    need(http_json("GET", "healthz").get("status") == "ok", "status is not ok")


@check("C03-create-model")
def _():
    tc = shared_model()
    c = proxy.named("create_model")[0]
    j = json.loads(c["body"])
    need(j["model_seq_id"] == 0 and j["lora_config"]["rank"] == args.rank and j["type"] == "create_model", f"body {j}")
    r = [c for c in proxy.named("retrieve_future") if c["headers"].get("x-tinker-request-type") == "CreateModel"]
    need(r, "no retrieve with X-Tinker-Request-Type CreateModel")
    need(isinstance(tc.model_id, str) and tc.model_id, "no model id")


@check("C03-get-info")
def _():
    info = shared_model().get_info()
    need(info.model_data.model_name, "model_data.model_name is empty")
    need(info.is_lora is True and info.lora_rank == args.rank, f"is_lora {info.is_lora}, lora_rank {info.lora_rank}")


@check("C03-model-id-form")
def _():
    need(re.fullmatch(r".+:train:\d+", shared_model().model_id),
         f"model id {shared_model().model_id!r} is not SESSION:train:N, which create-from-state of SDK >= 0.38 assumes")


@check("C03-rank-zero-is-400")
def _():
    fails(lambda: model(rank=0), tinker.BadRequestError, tinker.UnprocessableEntityError)


@check("C03-unknown-base-model")
def _():
    fails(lambda: rv(svc().create_lora_training_client(base_model="no-such/model", rank=args.rank)))


@check("C25-tokenizer")
def _():
    tok = shared_model().get_tokenizer()
    need(tok.decode(tok.encode("Hello world")) == "Hello world", "the tokenizer does not round-trip")


# ---------------------------------------------------------------- C4-C9 training
@check("C04-forward-backward-shape")
def _():
    out = rv(shared_model().forward_backward([ce(A), ce(B[:5])], "cross_entropy"))
    need([len(o["logprobs"].data) for o in out.loss_fn_outputs] == [len(A) - 1, 4], "wrong number of logprobs")
    need(all(np.all(lps(out, i) <= 0) and np.all(np.isfinite(lps(out, i))) for i in (0, 1)), "a logprob is positive or not finite")
    need(all(k.count(":") == 1 for k in out.metrics), f"metric keys need exactly one colon: {list(out.metrics)}")


@check("C04-cross-entropy-loss-sum")
def _():
    w = [0.0, 1.0, 1.0, 0.5, 0.0, 2.0, -1.0, 1.0]
    out = rv(shared_model().forward([ce(A, w)], "cross_entropy"))
    close(loss_sum(out), -float(np.dot(w, lps(out))), 1e-3 * max(1, abs(loss_sum(out))), "loss:sum against -sum(w*logprob)")


@check("C04-zero-weight-logprobs-present")
def _():
    a = lps(rv(shared_model().forward([ce(A, [0.0] * 8)], "cross_entropy")))
    b = lps(rv(shared_model().forward([ce(A)], "cross_entropy")))
    close(a, b, TOL, "logprobs at weight 0")


@check("C04-absent-weights")
def _():
    d = types.Datum(model_input=mi(A[:-1]), loss_fn_inputs={"target_tokens": td(A[1:], "int64")})
    out = rv(shared_model().forward([d], "cross_entropy"))
    need(len(lps(out)) == 8, "no logprobs without weights")


@check("C05-forward-equals-forward-backward")
def _():
    with fresh() as tc:
        a, b = rv(tc.forward([ce(A)], "cross_entropy")), rv(tc.forward_backward([ce(A)], "cross_entropy"))
        close(lps(a), lps(b), max(1e-4, TOL / 10), "forward against forward_backward")


@check("C05-forward-leaves-no-gradient")
def _():
    with fresh() as tc:
        before = logprobs_of(tc, A)
        rv(tc.optim_step(types.AdamParams(learning_rate=0.05)))
        close(logprobs_of(tc, A), before, 1e-5, "weights moved by a step without gradients")


@check("C05-fresh-adapter-equals-base")
def _():
    s = rv(svc().create_sampling_client(base_model=args.base_model))
    with fresh() as tc:
        close(logprobs_of(tc, A), clp(s, A)[1:], TOL, "new adapter against the base model's sampler")


@check("C06-chunking")
def _():
    if SDK < (0, 25):
        raise Skip("the chunk length is fixed before SDK 0.25")
    p = Proxy(args.base_url, {"fwdbwd_max_chunk_len": 2, "parallel_fwdbwd_chunks": True})
    try:
        data = [ce(A[k:k + 4]) for k in range(5)]
        with fresh() as ref:
            rv(ref.forward_backward(data, "cross_entropy"))
            rv(ref.optim_step(ADAM))
            want = logprobs_of(ref, A)
        sc = service(p.url)
        tc = rv(sc.create_lora_training_client(base_model=args.base_model, rank=args.rank, seed=7))
        _made.append(tc.model_id)
        f, o = tc.forward_backward(data, "cross_entropy"), tc.optim_step(ADAM)
        out = rv(f)
        rv(o)
        order = [c["path"].split("/")[-1] for c in p.calls if c["path"].endswith(("/forward_backward", "/optim_step"))]
        need(order == ["forward_backward"] * 3 + ["optim_step"], f"wire order {order}")
        need(len(out.loss_fn_outputs) == 5, f"{len(out.loss_fn_outputs)} outputs of 5")
        close(logprobs_of(tc, A), want, max(1e-4, TOL / 10), "weights after chunked and unchunked runs")
        unload(tc)
    finally:
        p.close()


@check("C07-accumulation-over-calls")
def _():
    x, _ = moved("cross_entropy", [ce(A), ce(B)], params=ADAM)
    y, _ = moved("cross_entropy", [ce(A)], params=ADAM, extra=([ce(B)],))
    close(x, y, max(1e-4, TOL / 10), "fb(A)+fb(B) against fb(A+B), one Adam step each")


@check("C07-sum-over-data")
def _():
    x, _ = moved("cross_entropy", [ce(A), ce(A)])
    y, _ = moved("cross_entropy", [ce(A)])
    same_direction(x, y, 2.0, what="gradient of [d, d] against [d]")


@check("C07-sum-over-calls")
def _():
    x, _ = moved("cross_entropy", [ce(A)], extra=([ce(A)],))
    y, _ = moved("cross_entropy", [ce(A)])
    same_direction(x, y, 2.0, what="gradient of fb(d), fb(d) against fb(d)")


@check("C07-weights-scale-the-gradient")
def _():
    x, _ = moved("cross_entropy", [ce(A, [2.0] * 8)])
    y, _ = moved("cross_entropy", [ce(A, [1.0] * 8)])
    same_direction(x, y, 2.0, what="gradient with weights 2 against weights 1")


@check("C07-sum-over-tokens")
def _():
    h = [1.0] * 4 + [0.0] * 4
    x, _ = moved("cross_entropy", [ce(A)])
    y, _ = moved("cross_entropy", [ce(A, h)], extra=([ce(A, h[::-1])],))
    same_direction(x, y, 1.0, what="gradient of all tokens against the sum over two halves")


@check("C07-negative-weights")
def _():
    x, _ = moved("cross_entropy", [ce(A, [-1.0] * 8)])
    y, _ = moved("cross_entropy", [ce(A)])
    same_direction(x, -y, 1.0, tol=0.15, what="gradient with weights -1 against the opposite of weights 1")


ADV = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -0.5, 1.0, -2.0])
SHIFT = np.array([0.0, 0.5, 0.5, -0.5, -0.4, 0.1, 0.05, -0.6])  # logprob - q, so ratios 1.65, 0.61, ... around the clip bounds


def ratio_case(loss_fn, config, coefficient, value):
    """loss:sum against value(l, r) and the gradient against cross_entropy with weights = coefficient(l, r)."""
    with fresh() as tc:
        l0 = logprobs_of(tc, A)
        out = rv(tc.forward([rl(A, l0 - SHIFT, ADV)], loss_fn, config) if config else tc.forward([rl(A, l0 - SHIFT, ADV)], loss_fn))
        close(lps(out), l0, TOL, "logprobs returned by " + loss_fn)
    r = np.exp(SHIFT)
    x, _ = moved(loss_fn, [rl(A, l0 - SHIFT, ADV)], config)
    y, _ = moved("cross_entropy", [ce(A, [float(c) for c in coefficient(l0, r)])])
    problems = []
    try:
        same_direction(x, y, 1.0, tol=0.1, what=f"gradient of {loss_fn} against its closed form")
    except AssertionError as e:
        problems.append(str(e))
    try:
        want = float(value(l0, r))
        close(loss_sum(out), want, 2e-3 * max(1.0, abs(want)), "loss:sum against its closed form")
    except AssertionError as e:
        problems.append(str(e))
    need(not problems, "; ".join(problems))


@check("C08-importance-sampling")
def _():
    ratio_case("importance_sampling", None, lambda lp, r: r * ADV, lambda lp, r: -(r * ADV).sum())


def ppo_coef(r, lo, hi):
    clipped = np.clip(r, lo, hi)
    return np.where(r * ADV <= clipped * ADV, r * ADV, 0.0)  # the clipped branch has no gradient


@check("C08-ppo-default-clip")
def _():
    ratio_case("ppo", None, lambda lp, r: ppo_coef(r, 0.8, 1.2), lambda lp, r: -np.minimum(r * ADV, np.clip(r, 0.8, 1.2) * ADV).sum())


@check("C08-ppo-thresholds")
def _():
    c = {"clip_low_threshold": 0.5, "clip_high_threshold": 1.5}
    ratio_case("ppo", c, lambda lp, r: ppo_coef(r, 0.5, 1.5), lambda lp, r: -np.minimum(r * ADV, np.clip(r, 0.5, 1.5) * ADV).sum())


@check("C08-cispo-thresholds")
def _():
    c = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}
    ratio_case("cispo", c, lambda lp, r: np.clip(r, 0.8, 1.2) * ADV, lambda lp, r: -(np.clip(r, 0.8, 1.2) * lp * ADV).sum())


@check("C08-cispo-default-clip")
def _():
    ratio_case("cispo", None, lambda lp, r: np.clip(r, 0.0, 4.0) * ADV, lambda lp, r: -(np.clip(r, 0.0, 4.0) * lp * ADV).sum())


@check("C08-dro")
def _():
    ratio_case("dro", {"beta": 0.05}, lambda lp, r: ADV - 0.05 * SHIFT, lambda lp, r: -(lp * ADV - 0.5 * 0.05 * SHIFT ** 2).sum())


@check("C08-unknown-loss")
def _():
    with fresh() as tc:
        fails(lambda: rv(tc.forward([ce(A)], "no_such_loss")))


@check("C08-unknown-config-key")
def _():
    with fresh() as tc:
        fails(lambda: rv(tc.forward([rl(A, [-1.0] * 8, [1.0] * 8)], "ppo", {"no_such_key": 1.0})))


@check("C08-bad-shape")
def _():
    with fresh() as tc:
        d = types.Datum(model_input=mi(A[:-1]), loss_fn_inputs={"target_tokens": td(A[1:4], "int64"), "weights": td([1.0] * 3)})
        fails(lambda: rv(tc.forward([d], "cross_entropy")))


@check("C08-missing-input")
def _():
    with fresh() as tc:
        fails(lambda: rv(tc.forward([ce(A)], "importance_sampling")))


@check("C08-token-id-out-of-range")
def _():
    with fresh() as tc:
        fails(lambda: rv(tc.forward([ce([5, 6, 99_999_999, 7])], "cross_entropy")))


@check("C08-int-advantages")
def _():
    with fresh() as tc:
        d = types.Datum(model_input=mi(A[:-1]), loss_fn_inputs={
            "target_tokens": td(A[1:], "int64"), "logprobs": td([-1.0] * 8), "advantages": td([0] * 8, "int64")})
        rv(tc.forward([d], "importance_sampling"))


@check("C09-adam-is-scale-invariant")
def _():
    x, _ = moved("cross_entropy", [ce(A, [10.0] * 8)], params=ADAM)
    y, _ = moved("cross_entropy", [ce(A)], params=ADAM)
    same_direction(x, y, 1.0, tol=0.02, what="Adam's first step with weights 10 against 1")


@check("C09-learning-rate-zero")
def _():
    x, _ = moved("cross_entropy", [ce(A)], params=types.AdamParams(learning_rate=0.0))
    close(x, np.zeros_like(x), 1e-6, "change at learning rate 0")


@check("C09-grad-clip-norm")
def _():
    p = {"learning_rate": 2.0 * EPS, "beta1": 0.0, "beta2": 0.0, "eps": EPS}
    x, _ = moved("cross_entropy", [ce(A)], params=types.AdamParams(**p, grad_clip_norm=2e-3))
    y, _ = moved("cross_entropy", [ce(A)], params=types.AdamParams(**p, grad_clip_norm=1e-3))
    same_direction(x, y, 2.0, tol=0.1, what="step clipped at 2e-3 against 1e-3")


@check("C09-weight-decay")
def _():
    with fresh() as tc:
        rv(tc.forward_backward([ce(A)], "cross_entropy"))
        base = logprobs_of(tc, A)
        rv(tc.optim_step(types.AdamParams(learning_rate=1e-2)))
        stepped = logprobs_of(tc, A)
        rv(tc.optim_step(types.AdamParams(learning_rate=1.0, beta1=0.0, beta2=0.0, eps=1e9, weight_decay=1.0)))
        close(logprobs_of(tc, A), base, max(5e-3, 5 * TOL), "weight_decay 1 at learning rate 1 must zero the adapter, back to the base")
        need(np.max(np.abs(stepped - base)) > 0.01, "the first step had no effect")


@check("C09-optim-step-without-gradients")
def _():
    with fresh() as tc:
        rv(tc.optim_step(types.AdamParams(learning_rate=1e-3)))


@check("C09-order-while-outstanding")
def _():
    with fresh() as tc:
        fs = []
        for _ in range(3):
            fs.append(tc.forward_backward([ce(A)], "cross_entropy"))
            fs.append(tc.optim_step(types.AdamParams(learning_rate=5e-3)))
        piped = [lps(rv(f)) for f in fs[::2]]
        [rv(f) for f in fs[1::2]]
    with fresh() as tc:
        for k in range(3):
            close(lps(rv(tc.forward_backward([ce(A)], "cross_entropy"))), piped[k], max(1e-3, TOL), f"step {k}, pipelined against awaited")
            rv(tc.optim_step(types.AdamParams(learning_rate=5e-3)))
    need(piped[2].sum() > piped[0].sum() + 1e-3, "three steps did not raise the likelihood")


# ---------------------------------------------------------------- C10-C12 sampling
@check("C10-ephemeral-sampler-greedy")
def _():
    s = main_sampler()
    saves = [json.loads(c["body"]) for c in proxy.named("save_weights_for_sampler")]
    need(saves and "path" not in saves[-1] and saves[-1].get("sampling_session_seq_id") is not None, f"save body {saves[-1:]}")
    o = sample(s, n=3, max_tokens=8, temperature=0.0)
    need(len(o.sequences) == 3, f"{len(o.sequences)} sequences of 3")
    t = [list(q.tokens) for q in o.sequences]
    need(t[0] == t[1] == t[2], f"greedy samples differ: {t}")
    need(all(q.logprobs is not None and len(q.logprobs) == len(q.tokens) for q in o.sequences), "logprobs are missing or of another length")


@check("C10-sample-sequence-ids")
def _():
    sample(main_sampler(), n=3, max_tokens=2, temperature=1.0)
    sid, n = json.loads(proxy.named("asample")[-1]["body"])["sampling_session_id"], 3
    body = {"num_samples": n, "prompt": {"chunks": [{"type": "encoded_text", "tokens": A}]}, "sampling_params": {"max_tokens": 2},
            "sampling_session_id": sid, "seq_id": 777_000, "topk_prompt_logprobs": 0, "type": "sample"}
    ids = http_json("POST", "asample", body).get("sample_sequence_ids")
    need(isinstance(ids, list) and len(set(ids)) == n, f"sample_sequence_ids is {ids!r}; SDK >= 0.26 asserts on it")


@check("C11-max-tokens-1-length")
def _():
    q = sample(main_sampler(), max_tokens=1, temperature=1.0, seed=1, stop=[]).sequences[0]
    need(len(q.tokens) == 1 and q.stop_reason == "length", f"{q.tokens} {q.stop_reason}")


def greedy():
    return list(sample(main_sampler(), n=1, max_tokens=8, temperature=0.0).sequences[0].tokens)


@check("C11-stop-token-included")
def _():
    g = greedy()
    k = g.index(g[-1]) if g[-1] in g else len(g) - 1
    stop = g[k]
    q = sample(main_sampler(), n=1, max_tokens=8, temperature=0.0, stop=[stop]).sequences[0]
    want = g[:g.index(stop) + 1]
    need(list(q.tokens) == want and q.stop_reason == "stop", f"got {list(q.tokens)} {q.stop_reason}, expected {want} stop")


def stop_text():
    tok, g = tokenizer(), greedy()
    for i, t in enumerate(g):
        s = tok.decode([t])
        if s.strip() and "\ufffd" not in s and i > 0:
            return s, i, g
    raise Skip("the greedy text has no usable stop string")


@check("C11-stop-string-list")
def _():
    s, i, g = stop_text()
    q = sample(main_sampler(), n=1, max_tokens=8, temperature=0.0, stop=[s]).sequences[0]
    need(q.stop_reason == "stop" and s in tokenizer().decode(list(q.tokens)) and len(q.tokens) <= i + 1,
         f"stop {s!r}: got {list(q.tokens)} {q.stop_reason} of greedy {g}")


@check("C11-stop-plain-string")
def _():
    s, i, g = stop_text()
    q = sample(main_sampler(), n=1, max_tokens=8, temperature=0.0, stop=s).sequences[0]
    need(q.stop_reason == "stop" and len(q.tokens) <= i + 1, f"stop {s!r}: got {list(q.tokens)} {q.stop_reason}")


@check("C11-seed-determinism")
def _():
    a, b, c = (list(sample(main_sampler(), n=1, max_tokens=12, temperature=1.0, seed=k, stop=[]).sequences[0].tokens) for k in (11, 11, 12))
    need(a == b, f"the same seed gave {a} and {b}")
    need(a != c, f"seeds 11 and 12 both gave {a}")


@check("C11-seeded-samples-differ")
def _():
    o = sample(main_sampler(), n=4, max_tokens=12, temperature=1.0, seed=5, stop=[])
    need(len({tuple(q.tokens) for q in o.sequences}) > 1, "four samples of one seeded request are all equal")


@check("C11-top-k-1-is-greedy")
def _():
    q = sample(main_sampler(), n=1, max_tokens=8, temperature=1.0, top_k=1, seed=3).sequences[0]
    need(list(q.tokens) == greedy(), f"{list(q.tokens)} is not the greedy {greedy()}")


@check("C11-top-p-tiny-is-greedy")
def _():
    q = sample(main_sampler(), n=1, max_tokens=8, temperature=1.0, top_p=1e-6, seed=3).sequences[0]
    need(list(q.tokens) == greedy(), f"{list(q.tokens)} is not the greedy {greedy()}")


@check("C12-sample-logprobs-equal-compute-logprobs")
def _():
    q = sample(main_sampler(), n=1, max_tokens=8, temperature=1.0, seed=2, stop=[]).sequences[0]
    lp = clp(main_sampler(), A + list(q.tokens))
    close(q.logprobs, lp[len(A):], TOL, "sampled logprobs against compute_logprobs")


@check("C12-logprobs-at-temperature-0.5")
def _():
    q = sample(main_sampler(), n=1, max_tokens=6, temperature=0.5, seed=2, stop=[]).sequences[0]
    lp = clp(main_sampler(), A + list(q.tokens))
    close(q.logprobs, lp[len(A):], TOL, "logprobs sampled at T=0.5 against those at T=1 (untempered convention)")


@check("C12-prompt-logprobs-equal-training-forward")
def _():
    with fresh() as tc:
        s = rv(tc.save_weights_and_get_sampling_client())
        close(clp(s, A)[1:], logprobs_of(tc, A), TOL, "prompt logprobs against the trainer's forward")


@check("C12-prompt-logprobs-length")
def _():
    lp = rv(main_sampler().compute_logprobs(mi(A)))
    need(len(lp) == len(A) and lp[0] is None, f"{len(lp)} entries for {len(A)} tokens, the first is {lp[0]}")


@check("C12-topk-prompt-logprobs")
def _():
    o = sample(main_sampler(), n=1, max_tokens=1, temperature=1.0, include_prompt_logprobs=True, topk_prompt_logprobs=5)
    t = o.topk_prompt_logprobs
    need(t is not None and len(t) == len(A), f"topk_prompt_logprobs has {None if t is None else len(t)} entries of {len(A)}")
    need(t[0] is None, "position 0 is not None")
    for i, row in enumerate(t[1:], 1):
        v = [x[1] for x in row]
        need(len(row) == 5 and v == sorted(v, reverse=True), f"row {i} is not 5 sorted entries: {row}")
        for tid, lp in row:
            if tid == A[i]:
                close(lp, o.prompt_logprobs[i], TOL, f"row {i}, the prompt token's logprob")
        need(o.prompt_logprobs[i] <= v[0] + TOL, f"row {i}: the prompt token is likelier than the top entry")


@check("C12-topk-sample-logprobs")
def _():
    if SDK < (0, 29):
        raise Skip("needs SDK >= 0.29")
    q = sample(main_sampler(), n=1, max_tokens=4, temperature=0.0, topk_sample_logprobs=3).sequences[0]
    need(q.topk_logprobs is not None and len(q.topk_logprobs) == len(q.tokens), "no topk_logprobs on the sequence")
    need(all(row[0][0] == t for row, t in zip(q.topk_logprobs, q.tokens)), "the greedy token is not the top entry")


@check("C12-target-prompt-logprobs")
def _():
    if SDK < (0, 30):
        raise Skip("needs SDK >= 0.30")
    ids = [[a, 100] for a in A[1:]]
    o = sample(main_sampler(), n=1, max_tokens=1, include_prompt_logprobs=True,
               target_prompt_logprobs=types.TensorData(data=[x for r in ids for x in r], dtype="int64", shape=[len(ids), 2]))
    need(o.target_prompt_logprobs is not None, "the server ignored target_prompt_logprobs")
    close(np.array(o.target_prompt_logprobs.data).reshape(-1, 2)[:, 0], o.prompt_logprobs[1:], TOL, "target column 0")


@check("C12-prompt-logprobs-last-n")
def _():
    if SDK < (0, 33):
        raise Skip("needs SDK >= 0.33")
    lp = rv(main_sampler().compute_logprobs(mi(A), prompt_logprobs_last_n=3))
    need(all(x is None for x in lp[:-3]) and all(x is not None for x in lp[-3:]), f"{lp}")


@check("C10-context-overflow-is-400")
def _():
    j = http_json("GET", "get_server_capabilities")
    lim = next((m.get("max_context_length") for m in j["supported_models"] if m.get("model_name") == args.base_model), None)
    if not lim:
        raise Skip("the server does not report max_context_length")
    fails(lambda: sample(main_sampler(), n=1, max_tokens=int(lim) + 10), tinker.BadRequestError, match="exceeds|max_tokens >")


@check("C10-max-tokens-absent")
def _():
    q = sample(main_sampler(), n=1, temperature=0.0, stop=[greedy()[0]]).sequences[0]
    need(len(q.tokens) >= 1, "no token")


@check("C10-sampler-is-pinned")
def _():
    with fresh() as tc:
        s = rv(tc.save_weights_and_get_sampling_client())
        before = clp(s, A)[1:]
        rv(tc.forward_backward([ce(A)], "cross_entropy"))
        rv(tc.optim_step(types.AdamParams(learning_rate=0.02)))
        s2 = rv(tc.save_weights_and_get_sampling_client())
        after = clp(s2, A)[1:]
        close(clp(s, A)[1:], before, TOL, "the older sampling client after a step and a newer snapshot")
        need(sum(after) > sum(before) + 0.01, "the newer snapshot does not hold the step")
        close(after, logprobs_of(tc, A), TOL, "the newer snapshot against the trainer")


@check("C10-samplers-info")
def _():
    s = main_sampler()
    sid = getattr(s, "_sampling_session_id", None) or json.loads(proxy.named("asample")[-1]["body"])["sampling_session_id"]
    j = http_json("GET", f"samplers/{sid}")
    need(j.get("sampler_id") == sid and j.get("base_model") == args.base_model, f"{j}")


@check("C17-concurrent-samples")
def _():
    s = main_sampler()
    t = time.monotonic()
    fs = [s.sample(prompt=mi(A), num_samples=1, sampling_params=types.SamplingParams(max_tokens=4, seed=k)) for k in range(args.load)]
    n = sum(len(rv(f).sequences[0].tokens) for f in fs)
    print(f"   {args.load} samples, {n} tokens in {time.monotonic() - t:.1f} s", flush=True) if args.verbose else None


@check("C26-second-client-of-one-sampler")
def _():
    import pickle
    s2 = pickle.loads(pickle.dumps(main_sampler()))
    sample(s2, n=1, max_tokens=2, seed=1)
    seqs = [json.loads(c["body"])["seq_id"] for c in proxy.named("asample")]
    need(max(seqs) >= 10 ** 9, f"no sequence id of a clone among {seqs[-3:]}")


# ---------------------------------------------------------------- C13-C14 checkpoints
def uniq(p):
    return f"{p}-{uuid.uuid4().hex[:8]}"


@check("C13-save-state-path")
def _():
    with fresh() as tc:
        n = uniq("a")
        path = rv(tc.save_state(n)).path
        need(path == f"tinker://{tc.model_id}/weights/{n}", f"path {path}")


@check("C13-name-with-dot")
def _():
    with fresh() as tc:
        rv(tc.save_state(uniq("a.b")))


@check("C13-bad-name-rejected")
def _():
    with fresh() as tc:
        fails(lambda: rv(tc.save_state("../x")))


@check("C13-replayed-save-returns-same-request")
def _():
    with fresh() as tc:
        body = {"model_id": tc.model_id, "path": uniq("r"), "seq_id": 1, "overwrite": False, "type": "save_weights"}
        a, b = http_json("POST", "save_weights", body), http_json("POST", "save_weights", body)
        need(a["request_id"] == b["request_id"], f"request ids {a['request_id']} and {b['request_id']}")
        s, _, data = poll(a["request_id"])
        need(s == 200 and json.loads(data).get("path"), f"{s} {data[:120]!r}")


@check("C13-save-existing-name-is-409")
def _():
    with fresh() as tc:
        body = {"model_id": tc.model_id, "path": uniq("d"), "seq_id": 1, "overwrite": False, "type": "save_weights"}
        poll(http_json("POST", "save_weights", body)["request_id"])
        s, _, data = http("POST", "save_weights", {**body, "seq_id": 2})
        if s == 200:  # also accepted: the failure is reported by the future
            s, _, data = poll(json.loads(data)["request_id"])
            need(b'"error"' in data, "a second save of one name succeeded without overwrite")
        else:
            need(s == 409, f"answered {s}")


@check("C13-overwrite")
def _():
    with fresh() as tc:
        n = uniq("o")
        p1 = rv(tc.save_state(n)).path
        body = {"model_id": tc.model_id, "path": n, "seq_id": 2, "overwrite": True, "type": "save_weights"}
        s, _, data = http("POST", "save_weights", body)
        need(s == 200, f"overwrite answered {s} {data[:120]!r}")
        s, _, data = poll(json.loads(data)["request_id"])
        need(s == 200 and json.loads(data).get("path") == p1, f"{s} {data[:120]!r}")


def trained(steps=2):
    tc = model()
    for _ in range(steps):
        rv(tc.forward_backward([ce(A), ce(B)], "cross_entropy"))
        rv(tc.optim_step(types.AdamParams(learning_rate=5e-3, eps=1e-8)))
    return tc


def one_more(tc):
    rv(tc.forward_backward([ce(A)], "cross_entropy"))
    rv(tc.optim_step(types.AdamParams(learning_rate=5e-3, eps=1e-8)))
    return logprobs_of(tc, A, B)


def saved():
    def go():
        tc = trained()
        p = rv(tc.save_state(uniq("st"))).path
        sp = rv(tc.save_weights_for_sampler(uniq("sm"))).path
        at = logprobs_of(tc, A, B)
        after = one_more(tc)
        unload(tc)
        return {"path": p, "sampler": sp, "at": at, "after": after, "model": tc.model_id}
    return cached("saved", go)


@check("C14-weights-info")
def _():
    j = http_json("POST", "weights_info", {"tinker_path": saved()["path"]})
    need(j.get("is_lora") is True and j.get("lora_rank") == args.rank and j.get("base_model") == args.base_model, f"{j}")


@check("C14-create-from-state-with-optimizer")
def _():
    tc = rv(svc().create_training_client_from_state_with_optimizer(saved()["path"]))
    _made.append(tc.model_id)
    close(logprobs_of(tc, A, B), saved()["at"], TOL, "restored weights")
    close(one_more(tc), saved()["after"], max(TOL, 1e-3), "one step after the restore against the uninterrupted run")
    unload(tc)


@check("C14-create-from-state-fresh-optimizer")
def _():
    tc = rv(svc().create_training_client_from_state(saved()["path"]))
    _made.append(tc.model_id)
    close(logprobs_of(tc, A, B), saved()["at"], TOL, "restored weights")
    d = float(np.max(np.abs(one_more(tc) - saved()["after"])))
    need(d > 1e-4, "a step with a fresh optimizer equals the uninterrupted run")
    unload(tc)


@check("C14-legacy-create-then-load")
def _():
    with fresh(seed=99) as tc:
        body = {"model_id": tc.model_id, "seq_id": 1, "path": saved()["path"], "optimizer": True, "type": "load_weights"}
        s, _, data = poll(http_json("POST", "load_weights", body)["request_id"])
        need(s == 200 and b'"error"' not in data, f"{s} {data[:160]!r}")
        tc._request_id_counter = 1
        if hasattr(tc, "_turn_counter"):
            tc._turn_counter = 1
        close(logprobs_of(tc, A, B), saved()["at"], TOL, "restored weights")


@check("C14-load-state-in-place")
def _():
    with fresh(seed=98) as tc:
        rv(tc.forward([ce(A)], "cross_entropy"))
        rv(tc.load_state_with_optimizer(saved()["path"]))
        close(logprobs_of(tc, A, B), saved()["at"], TOL, "weights after load_state on a used client")


@check("C14-load-missing-path")
def _():
    fails(lambda: rv(svc().create_training_client_from_state("tinker://no-such-run:train:0/weights/nothing")), within=60)


@check("C14-named-sampler-path")
def _():
    need(re.fullmatch(r"tinker://[^/]+/sampler_weights/[^/]+", saved()["sampler"]), f"path {saved()['sampler']!r} is not three-part")


@check("C14-sample-from-named-path")
def _():
    s = rv(svc().create_sampling_client(model_path=saved()["sampler"]))
    close(clp(s, A)[1:], saved()["at"][:8], TOL, "named sampler against the trainer at the save")


# ---------------------------------------------------------------- C16-C20 faults and idempotency
def faulty(path, faults, run):
    p = Proxy(args.base_url, shim_sequence_ids=args.shim_sequence_ids)
    try:
        sc = service(p.url)
        tc = rv(sc.create_lora_training_client(base_model=args.base_model, rank=args.rank, seed=7))
        _made.append(tc.model_id)
        fs = [p.add(f) for f in faults]
        r = run(tc, p)
        need(all(f.fired >= 1 for f in fs), "a fault did not fire")
        unload(tc)
        return r
    finally:
        p.close()


def two_steps(tc, p=None):
    for _ in range(2):
        rv(tc.forward_backward([ce(A)], "cross_entropy"))
        rv(tc.optim_step(ADAM))
    return logprobs_of(tc, A)


def reference():
    def go():
        with fresh() as tc:
            return two_steps(tc)
    return cached("ref2", go)


@check("C16-500-twice-on-submit")
def _():
    got = faulty("", [Fault("/optim_step", status=500, times=2), Fault("/forward_backward", status=500, times=1)], two_steps)
    close(got, reference(), 1e-4, "weights after retried submissions")


@check("C16-429-retry-after")
def _():
    got = faulty("", [Fault("/optim_step", status=429, headers={"retry-after": "1"})], two_steps)
    close(got, reference(), 1e-4, "weights after a 429")


@check("C16-lost-answer-optim-step")
def _():
    got = faulty("", [Fault("/optim_step", kind="drop_after")], two_steps)
    close(got, reference(), 1e-4, "weights after a lost optim_step answer (executed twice?)")


@check("C16-lost-answer-forward-backward")
def _():
    got = faulty("", [Fault("/forward_backward", kind="drop_after")], two_steps)
    close(got, reference(), 1e-4, "weights after a lost forward_backward answer (gradient added twice?)")


@check("C16-lost-answer-create-model")
def _():
    p = Proxy(args.base_url)
    try:
        sc = service(p.url)
        p.add(Fault("/create_model", kind="drop_after"))
        tc = rv(sc.create_lora_training_client(base_model=args.base_model, rank=args.rank, seed=7))
        _made.append(tc.model_id)
        ids = [json.loads(c["response"]).get("request_id") for c in p.named("create_model")]
        for i in {json.loads(c["response"]).get("model_id") for c in p.named("create_model")} - {None, tc.model_id}:
            http("POST", "unload_model", {"model_id": i, "type": "unload_model"})
        need(len(ids) == 2 and ids[0] == ids[1], f"the retried create_model got request ids {ids}: two models")
        unload(tc)
    finally:
        p.close()


@check("C16-lost-answer-save-for-sampler")
def _():
    def run(tc, p):
        s = rv(tc.save_weights_and_get_sampling_client())
        ids = [json.loads(c["response"]).get("request_id") for c in p.named("save_weights_for_sampler")]
        need(len(set(ids)) == 1, f"request ids {ids}")
        return s
    faulty("", [Fault("/save_weights_for_sampler", kind="drop_after")], run)


@check("C16-lost-answer-asample")
def _():
    def run(tc, p):
        s = rv(tc.save_weights_and_get_sampling_client())
        sample(s, n=1, max_tokens=2, seed=1)
        ids = [json.loads(c["response"]).get("request_id") for c in p.named("asample")]
        need(len(ids) >= 2 and len(set(ids)) == 1, f"request ids {ids} for one (session, seq_id)")
    faulty("", [Fault("/asample", kind="drop_after")], run)


@check("C16-lost-result")
def _():
    got = faulty("", [Fault("/retrieve_future", kind="drop_after", when=lambda c: c["headers"].get("x-tinker-request-type") in ("OptimStep", "ForwardBackward"), times=2)], two_steps)
    close(got, reference(), 1e-4, "weights after lost results")


@check("C16-410-resubmits-sample")
def _():
    def run(tc, p):
        s = rv(tc.save_weights_and_get_sampling_client())
        sample(s, n=1, max_tokens=2, seed=1)
        seqs = [json.loads(c["body"])["seq_id"] for c in p.named("asample")]
        need(len(seqs) == 2 and seqs[0] != seqs[1], f"asample seq_ids {seqs}")
    faulty("", [Fault("/retrieve_future", status=410, when=lambda c: c["headers"].get("x-tinker-request-type") == "Sample")], run)


@check("C17-429-on-asample")
def _():
    def run(tc, p):
        s = rv(tc.save_weights_and_get_sampling_client())
        p.add(Fault("/asample", status=429, times=3))
        fs = [s.sample(prompt=mi(A), num_samples=1, sampling_params=types.SamplingParams(max_tokens=2, seed=k)) for k in range(20)]
        [rv(f) for f in fs]
        seqs = [json.loads(c["body"])["seq_id"] for c in p.named("asample") if c["status"] == 200]
        need(sorted(seqs) == sorted(set(seqs)), "a sample was accepted twice")
    faulty("", [], run)


@check("C18-402-pause")
def _():
    def run(tc, p):
        t = time.monotonic()
        p.add(Fault("/retrieve_future", status=402, body={"detail": "billing"}, seconds=7))
        rv(tc.forward([ce(A)], "cross_entropy"))
        need(time.monotonic() - t >= 4, "the client did not pause")
    faulty("", [], run)


@check("C16-duplicate-seq-other-payload-is-409")
def _():
    with fresh() as tc:
        b = {"model_id": tc.model_id, "seq_id": 1, "type": "optim_step",
             "adam_params": {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-12, "weight_decay": 0.0, "grad_clip_norm": 0.0}}
        a1, a2 = http_json("POST", "optim_step", b), http_json("POST", "optim_step", b)
        need(a1["request_id"] == a2["request_id"], f"a replay got {a1['request_id']} and {a2['request_id']}")
        s, _, d = http("POST", "optim_step", {**b, "adam_params": {**b["adam_params"], "learning_rate": 1.0}})
        need(s == 409, f"another payload under the same seq_id answered {s}")


@check("C15-long-poll")
def _():
    """A future that cannot finish at once must be held, not answered in a busy loop: an optim_step whose earlier seq_id is missing."""
    with fresh() as tc:
        b = {"model_id": tc.model_id, "seq_id": 2, "type": "optim_step", "adam_params": {"learning_rate": 1e-4}}
        s, _, d = http("POST", "optim_step", b)
        if s != 200:
            raise Skip(f"a gap in seq_ids is refused with {s}")
        rid, t, n = json.loads(d)["request_id"], time.monotonic(), 0
        while time.monotonic() - t < 6:
            n += 1
            try:
                s, _, d = http("POST", "retrieve_future", {"request_id": rid, "allow_metadata_only": True}, timeout=max(0.1, 6 - (time.monotonic() - t)))
            except Exception:
                break
            if s == 200 and b"try_again" not in d:
                raise AssertionError("optim_step with seq_id 2 ran although seq_id 1 never arrived")
        need(n <= 4, f"{n} polls in 6 s: the server does not hold retrieve_future")


@check("C20-unknown-request-id")
def _():
    s, _, _ = http("POST", "retrieve_future", {"request_id": "999999999", "allow_metadata_only": False})
    need(s in (404, 410), f"answered {s}")


@check("C20-result-retrievable-twice")
def _():
    with fresh() as tc:
        r = http_json("POST", "optim_step", {"model_id": tc.model_id, "seq_id": 1, "type": "optim_step", "adam_params": {"learning_rate": 1e-4}})
        a, b = poll(r["request_id"]), poll(r["request_id"])
        need(a[0] == b[0] == 200 and a[2] == b[2], "the second retrieval differs")


@check("C24-zstd-requests")
def _():
    p = Proxy(args.base_url, {"proto_compress_fwdbwd": True})
    try:
        sc = service(p.url)
        tc = rv(sc.create_lora_training_client(base_model=args.base_model, rank=args.rank, seed=7))
        _made.append(tc.model_id)
        rv(tc.forward([ce(A)], "cross_entropy"))
        enc = [c["headers"].get("content-encoding") for c in p.calls if c["path"].endswith(("/forward_backward", "/forward"))]
        if enc[-1] != "zstd":
            raise Skip(f"this SDK sent content-encoding {enc[-1]}")
        unload(tc)
    finally:
        p.close()


@check("C16-malformed-protobuf")
def _():
    s, _, d = http("POST", "forward_backward", b"\xff\xfe not protobuf", headers={"Content-Type": "application/x-protobuf"})
    need(400 <= s < 500 and len(d) > 0, f"answered {s} with {len(d)} bytes")


@check("C16-unknown-model")
def _():
    def go():
        s, _, d = http("POST", "optim_step", {"model_id": "no-such-model", "seq_id": 1, "type": "optim_step", "adam_params": {"learning_rate": 1e-4}})
        if s == 200:
            s, _, d = poll(json.loads(d)["request_id"])
            need(b'"error"' in d or s >= 400, "an unknown model was accepted")
        else:
            need(s in (400, 403, 404, 422), f"answered {s}")
    go()


@check("C19-unload-then-use-fails")
def _():
    tc = model()
    need(unload(tc) == 200, "unload_model was refused")
    fails(lambda: rv(tc.forward([ce(A)], "cross_entropy")))


@check("C32-two-tenants")
def _():
    solo = reference()
    with fresh() as x, fresh(seed=8) as y:
        fs = []
        for _ in range(2):
            fs += [x.forward_backward([ce(A)], "cross_entropy"), y.forward_backward([ce(B, [5.0] * 8)], "cross_entropy"), x.optim_step(ADAM), y.optim_step(types.AdamParams(learning_rate=0.05))]
        [rv(f) for f in fs]
        close(logprobs_of(x, A), solo, max(1e-4, TOL / 10), "an interleaved run against the solo run")


@check("C28-telemetry")
def _():
    body = {"events": [{"event": "GENERIC_EVENT", "event_name": "x", "event_data": {}, "severity": "INFO", "event_id": "1",
                        "event_session_index": 0, "timestamp": "2026-01-01T00:00:00Z", "type": "generic_event"}],
            "platform": "linux", "sdk_version": tinker.__version__, "session_id": "sessionless-x", "process_uuid": "x"}
    need(http("POST", "telemetry", body)[0] == 200, "not accepted")


# ---------------------------------------------------------------- C22-C23 custom losses, matrices (torch)
@check("C22-forward-backward-custom")
def _():
    if torch is None:
        raise Skip("torch is not installed")
    with fresh() as tc:
        l0 = logprobs_of(tc, A)
        before = logprobs_of(tc, A, B)
        d = types.Datum(model_input=mi(A[:-1]), loss_fn_inputs={"target_tokens": td(A[1:], "int64")})
        out = rv(tc.forward_backward_custom([d], lambda data, lp: ((lp[0] ** 2).sum(), {"mine": 4.0})))
        rv(tc.optim_step(SGD))
        x = logprobs_of(tc, A, B) - before
        need(out.metrics.get("mine") == 4.0, f"metrics {out.metrics}")
    y, _ = moved("cross_entropy", [ce(A, [float(-2 * v) for v in l0])])
    same_direction(x, y, 1.0, tol=0.1, what="custom loss against cross_entropy with its analytic weights")


@check("C22-custom-dpo-pair")
def _():
    if torch is None:
        raise Skip("torch is not installed")
    with fresh() as tc:
        ref = [logprobs_of(tc, A).sum(), logprobs_of(tc, B).sum()]

        def dpo(data, lp):
            z = 0.1 * ((lp[0].sum() - ref[0]) - (lp[1].sum() - ref[1]))
            return -torch.nn.functional.logsigmoid(z), {"margin": float(z)}
        ds = [types.Datum(model_input=mi(s[:-1]), loss_fn_inputs={"target_tokens": td(s[1:], "int64")}) for s in (A, B)]
        rv(tc.forward_backward_custom(ds, dpo))
        rv(tc.optim_step(types.AdamParams(learning_rate=1e-2)))
        out = rv(tc.forward_backward_custom(ds, dpo))
        need(out.metrics["margin"] > 0, f"the DPO margin after a step is {out.metrics['margin']:.4g}")


def nk(tokens, K=3, csr=False):
    n = len(tokens) - 1
    ids = np.zeros((n, K), dtype=np.int64)
    w = np.zeros((n, K), dtype=np.float32)
    for i in range(n):
        ids[i] = [tokens[i + 1]] + [100 + 7 * i + k for k in range(1, K)]
        w[i] = [0.5, 0.3, 0.2][:K]
    ids[0, 1:], w[0, 1:] = 0, 0.0
    if csr:
        return types.Datum(model_input=mi(tokens[:-1]), loss_fn_inputs={
            "target_tokens": types.TensorData.from_torch_sparse(torch.tensor(ids)), "weights": types.TensorData.from_torch_sparse(torch.tensor(w))}), w
    return types.Datum(model_input=mi(tokens[:-1]), loss_fn_inputs={
        "target_tokens": types.TensorData(data=ids.ravel().tolist(), dtype="int64", shape=[n, K]),
        "weights": types.TensorData(data=w.ravel().tolist(), dtype="float32", shape=[n, K])}), w


@check("C23-matrix-targets-dense")
def _():
    d, w = nk(A)
    out = rv(shared_model().forward([d], "cross_entropy"))
    o = out.loss_fn_outputs[0]["logprobs"]
    need(list(o.shape or []) == [8, 3], f"logprobs shape {o.shape}")
    m = np.array(o.data).reshape(8, 3)
    close(m[:, 0], logprobs_of(shared_model(), A), TOL, "column 0")
    close(loss_sum(out), -float((w * m).sum()), 2e-3 * abs(float((w * m).sum())), "loss:sum")


@check("C23-matrix-targets-csr")
def _():
    if torch is None:
        raise Skip("torch is not installed")
    a = rv(shared_model().forward([nk(A)[0]], "cross_entropy"))
    b = rv(shared_model().forward([nk(A, csr=True)[0]], "cross_entropy"))
    close(loss_sum(a), loss_sum(b), 1e-3 * abs(loss_sum(a)), "CSR against dense")


# ---------------------------------------------------------------- C21 REST management
def rest():
    return svc().create_rest_client()


@check("C21-list-and-get-run")
def _():
    saved()
    r = rv(rest().list_training_runs(limit=50))
    ids = [t.training_run_id for t in r.training_runs]
    need(ids, "no training runs")
    t = rv(rest().get_training_run(saved()["model"]))
    need(t.training_run_id == saved()["model"] and t.is_lora and t.base_model == args.base_model, f"{t}")


@check("C21-run-paging")
def _():
    a, b = (http_json("GET", f"training_runs?limit=1&offset={k}") for k in (0, 1))
    need(len(a["training_runs"]) == 1 and a["cursor"]["limit"] == 1 and a["cursor"]["total_count"] >= 2, f"cursor {a.get('cursor')}")
    need(b["training_runs"] and b["training_runs"][0]["training_run_id"] != a["training_runs"][0]["training_run_id"], "offset has no effect")


@check("C21-list-run-checkpoints")
def _():
    r = rv(rest().list_checkpoints(saved()["model"]))
    kinds = {(c.checkpoint_type, c.tinker_path) for c in r.checkpoints}
    need(("training", saved()["path"]) in kinds, f"{kinds}")
    need(any(k == "sampler" for k, _ in kinds), f"no sampler checkpoint in {kinds}")


@check("C21-list-all-checkpoints")
def _():
    saved()
    r = rv(rest().list_user_checkpoints(limit=100))
    need(saved()["path"] in [c.tinker_path for c in r.checkpoints], "the checkpoint is not listed")


@check("C21-set-and-clear-ttl")
def _():
    rv(rest().set_checkpoint_ttl_from_tinker_path(saved()["path"], 7200))
    c = [c for c in rv(rest().list_checkpoints(saved()["model"])).checkpoints if c.tinker_path == saved()["path"]][0]
    need(c.expires_at is not None, "expires_at is not set")
    rv(rest().set_checkpoint_ttl_from_tinker_path(saved()["path"], None))


@check("C21-publish-twice-is-409")
def _():
    run, cid = saved()["path"][len("tinker://"):].split("/", 1)
    s, _, d = http("POST", f"training_runs/{run}/checkpoints/{cid}/publish")
    need(s in (200, 204), f"publish answered {s} {d[:100]!r}")
    s, _, _ = http("POST", f"training_runs/{run}/checkpoints/{cid}/publish")
    need(s == 409, f"the second publish answered {s}")
    s, _, _ = http("DELETE", f"training_runs/{run}/checkpoints/{cid}/publish")
    need(s in (200, 204), f"unpublish answered {s}")


@check("C21-archive-or-external-weights")
def _():
    if SDK >= (0, 36):
        tc = rv(svc().create_training_client_from_state(saved()["path"]))
        _made.append(tc.model_id)
        path = rv(tc.save_weights_external(uniq("ex"))).path
        urls = rv(rest().get_external_weights_urls(path)).urls
        need({"adapter_config.json", "adapter_model.safetensors"} <= {os.path.basename(k) for k in urls}, f"files {sorted(urls)[:6]}")
        unload(tc)
    else:
        r = rv(rest().get_checkpoint_archive_url_from_tinker_path(saved()["sampler"]))
        data = urllib.request.urlopen(r.url, timeout=60).read()
        import io
        import tarfile
        names = tarfile.open(fileobj=io.BytesIO(data)).getnames()
        need(any(n.endswith("adapter_model.safetensors") for n in names), f"{names[:6]}")


@check("C21-sessions")
def _():
    sid = json.loads(proxy.named("create_model")[0]["body"])["session_id"]
    need(sid in rv(rest().list_sessions(limit=100)).sessions, "the session is not listed")
    s = rv(rest().get_session(sid))
    need(shared_model().model_id in s.training_run_ids, f"{s}")


def cli(*a):
    env = {**os.environ, "TINKER_BASE_URL": args.base_url.rstrip("/"), "TINKER_API_KEY": args.api_key}
    r = subprocess.run([sys.executable, "-m", "tinker.cli", "--format", "json", *a], env=env, capture_output=True, text=True, timeout=args.timeout)
    need(r.returncode == 0, f"tinker {' '.join(a)}: exit {r.returncode}: {(r.stderr or r.stdout).strip()[:200]}")
    return r.stdout


@check("C21-cli-run-list")
def _():
    saved()
    need(args.base_model.split("/")[-1] in cli("run", "list"), "the run is not printed")


@check("C21-cli-run-info")
def _():
    cli("run", "info", saved()["model"])


@check("C21-cli-checkpoint-list")
def _():
    need(saved()["path"] in cli("checkpoint", "list", "--run-id", saved()["model"]), "the checkpoint is not printed")


@check("C21-cli-checkpoint-info")
def _():
    cli("checkpoint", "info", saved()["path"])


@check("C21-delete-checkpoint")
def _():
    with fresh() as tc:
        path = rv(tc.save_state(uniq("del"))).path
        run, cid = path[len("tinker://"):].split("/", 1)
        s, _, d = http("DELETE", f"training_runs/{run}/checkpoints/{cid}")
        need(s in (200, 204), f"delete answered {s} {d[:100]!r}")
        s, _, _ = http("DELETE", f"training_runs/{run}/checkpoints/{cid}")
        need(s == 404, f"the second delete answered {s}")


@check("C29-session-finish")
def _():
    if SDK < (0, 27):
        raise Skip("needs SDK >= 0.27")
    p = Proxy(args.base_url)
    try:
        sc = service(p.url)
        getattr(sc, "holder", None)
        sc.close("success").result(timeout=30)
        need(p.named("finish") and p.named("finish")[-1]["status"] in (200, 204), "sessions/ID/finish was not accepted")
    finally:
        p.close()


# ---------------------------------------------------------------- last: these may damage a weak server
@check("C19-unload-drops-gradients")
def _():
    """Gradients accumulated by an unloaded model must not reach the next one (servers reuse adapter slots)."""
    tc = model()
    rv(tc.forward_backward([ce(A, [50.0] * 8)], "cross_entropy"))
    unload(tc)
    with fresh() as tc:
        before = logprobs_of(tc, A)
        rv(tc.optim_step(types.AdamParams(learning_rate=0.05)))
        close(logprobs_of(tc, A), before, 1e-5, "a new model moved by a step without gradients of its own")


@check("C08-nan-advantage-is-a-user-error")
def _():
    with fresh() as tc:
        e = fails(lambda: rv(tc.forward_backward([rl(A, [-1.0] * 8, [float("nan")] * 8)], "importance_sampling")))
        if SDK < (0, 25) and isinstance(e, ValueError):
            raise Skip("this SDK cannot put NaN into its JSON")
        cat = getattr(e, "category", None)
        need(isinstance(e, tinker.BadRequestError) or "user" in str(getattr(cat, "value", cat)).lower(),
             f"{type(e).__name__} with category {cat}")


# ---------------------------------------------------------------- runner
def run_one(fn):
    box = {}

    def go():
        try:
            fn()
            box["r"] = ("ok", "")
        except Skip as e:
            box["r"] = ("skip", str(e))
        except BaseException as e:
            if args.verbose:
                traceback.print_exc()
            msg = " ".join(str(e).split())[:300]
            box["r"] = ("FAIL", msg if isinstance(e, AssertionError) else f"{type(e).__name__}: {msg}")
    t = threading.Thread(target=go, daemon=True)
    t.start()
    t.join(args.timeout)
    return box.get("r", ("FAIL", f"no end after {args.timeout:g} s"))


def main():
    todo = [(n, f) for n, f in CHECKS if (not args.only or re.search(args.only, n)) and not (args.skip and re.search(args.skip, n))]
    if args.list:
        print("\n".join(n for n, _ in todo))
        return 0
    print(f"# tinker {tinker.__version__}, torch {'none' if torch is None else torch.__version__}, server {args.base_url}, {len(todo)} checks", flush=True)
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    for name, fn in todo:
        t = time.monotonic()
        word, why = run_one(fn)
        count[word] += 1
        print(f"{word} {name}" + (f": {why}" if why else "") + (f"  ({time.monotonic() - t:.1f} s)" if args.verbose else ""), flush=True)
    for m in list(_made):
        try:
            http("POST", "unload_model", {"model_id": m, "type": "unload_model"}, timeout=5)
        except Exception:
            pass
    print(f"{count['ok']} passed, {count['FAIL']} failed" + (f", {count['skip']} skipped" if count["skip"] else ""), flush=True)
    return 1 if count["FAIL"] else 0


rc = main()
sys.stdout.flush()
os._exit(rc)  # SDK background threads must not hold the process
