#!/usr/bin/env python3
"""The published SDK on both sides of a server's death, and one request for many samples.

Starts the server itself, with the command behind `--`, in which PORT stands for a free port; it must keep its data between starts. Kills it
(SIGKILL) in the middle of a step and starts it anew; nothing in the loop knows of that.
Prints 'ok NAME' or 'FAIL NAME: why', then 'N passed, N failed'. Exit 1 when a check failed.
"""
import argparse
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

ap = argparse.ArgumentParser()
ap.add_argument("--api-key", required=True)
ap.add_argument("--base-model", required=True)
ap.add_argument("--samples", type=int, default=500)
ap.add_argument("--timeout", type=float, default=240, help="seconds allowed for one result")
ap.add_argument("command", nargs="+")
args = ap.parse_args()
os.environ.update({"TINKER_TELEMETRY": "0", "HF_HUB_OFFLINE": "1", "TINKER_API_KEY": args.api_key})
with socket.create_server(("127.0.0.1", 0)) as taken:
    port = taken.getsockname()[1]
base = f"http://127.0.0.1:{port}"
command = [str(port) if word == "PORT" else word for word in args.command]

import logging  # noqa: E402

import tinker  # noqa: E402
from tinker import types  # noqa: E402

logging.disable(logging.CRITICAL)
count = {"ok": 0, "FAIL": 0}
server = None


def start():
    global server
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while time.monotonic() < until and server.poll() is None:
        try:
            return urllib.request.urlopen(f"{base}/health", timeout=1).close()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the server did not listen (exit code {server.poll()})")


def kill():
    server.kill()
    server.wait()


def check(name, function):
    begun = time.monotonic()
    try:
        said = function()
        count["ok"] += 1
        print(f"ok {name}", f"# {said}, {time.monotonic() - begun:.1f} s", flush=True)
    except Exception as error:  # a check that fails in any way is told, and the others go on
        count["FAIL"] += 1
        print(f"FAIL {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def equal(got, expected, what):
    assert got == expected, f"{what}: got {got}, expected {expected}"


def made(client):
    """Newer SDKs return a client's future, older ones the client."""
    return client.result(timeout=args.timeout) if "Future" in type(client).__name__ else client


def datum(i):
    tokens = [3 + (i * 7 + j) % 90 for j in range(9)]
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=tokens[1:], dtype="int64", shape=[8]),
            "weights": types.TensorData(data=[1.0] * 8, dtype="float32", shape=[8]),
        },
    )


def losses(killed_at=()):
    """Twelve steps; the server dies while the steps in `killed_at` are on their way."""
    service = tinker.ServiceClient(base_url=base)
    training = made(service.create_lora_training_client(args.base_model, rank=8, seed=7))
    found = []
    for step in range(12):
        restarted = None
        passes = training.forward_backward([datum(i) for i in range(8)], "cross_entropy")
        update = training.optim_step(types.AdamParams(learning_rate=1e-2))
        if step in killed_at:
            restarted = threading.Thread(target=lambda: (kill(), time.sleep(1), start()))
            restarted.start()
        found.append(passes.result(timeout=args.timeout).metrics["loss:sum"])
        update.result(timeout=args.timeout)
        if restarted is not None:
            restarted.join()
    training.save_state("end").result(timeout=args.timeout)
    return found


def loop_goes_on():
    undisturbed = losses()
    assert undisturbed[-1] < undisturbed[0] / 2, f"nothing was learnt: {undisturbed}"
    equal(losses(killed_at=(3, 8)), undisturbed, "losses of the loop whose server died twice")
    return f"12 losses, {undisturbed[0]:.1f} to {undisturbed[-1]:.1f}, equal in every bit to those of a loop that nothing disturbed"


def sampler():
    return made(tinker.ServiceClient(base_url=base).create_sampling_client(base_model=args.base_model))


def sampled(client, seed, n):
    asked = types.SamplingParams(max_tokens=8, temperature=1.0, seed=seed, stop=[])
    return client.sample(types.ModelInput.from_ints([5, 6, 7, 8]), num_samples=n, sampling_params=asked)


def samples_come():
    client = sampler()
    expected = [[s.tokens for s in sampled(client, i, 1).result(timeout=args.timeout).sequences] for i in range(64)]
    asked = [sampled(client, i, 1) for i in range(64)]
    kill()
    start()
    got = [[s.tokens for s in each.result(timeout=args.timeout).sequences] for each in asked]
    equal(got, expected, "samples")
    return "64 of 64, with the tokens that they have without a death"


def many_samples():
    found = sampled(sampler(), 1, args.samples).result(timeout=args.timeout).sequences
    equal(len(found), args.samples, "samples")
    assert all(len(s.tokens) == len(s.logprobs) == 8 for s in found), "a sample is not 8 tokens with 8 logprobs"
    different = len({tuple(s.tokens) for s in found})
    assert different > args.samples * 0.9, f"only {different} of {args.samples} differ"
    return f"{args.samples} samples of 8 tokens, {different} different ones"


try:
    start()
    check("many-samples-in-one-request", many_samples)
    check("samples-come-after-a-death", samples_come)
    check("loop-goes-on-after-deaths", loop_goes_on)
finally:
    kill()
print(f"{count['ok']} passed, {count['FAIL']} failed", flush=True)
os._exit(1 if count["FAIL"] else 0)  # the SDK's threads need not be waited for
