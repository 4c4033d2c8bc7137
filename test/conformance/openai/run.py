"""The published OpenAI client for Python against a server whose model says what the last user message says.

Prints `ok NAME` or `failed NAME: WHY` for each check, and ends with 1 if one failed.
"""

import asyncio
import json
import sys

import openai

url, key = sys.argv[1:3]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
MODEL = "scripted"
ADD = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}},
}
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
checks = []


def check(function):
    checks.append(function)
    return function


def says(text):
    """Messages to which the model says this."""
    return [{"role": "user", "content": text}]


def equal(got, expected):
    assert got == expected, f"expected {expected!r}, got {got!r}"


def refused(kind, **request):
    try:
        client.chat.completions.create(**{"model": MODEL, "messages": says("no"), **request})
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got an answer")


@check
def models():
    equal([model.id for model in client.models.list()], [MODEL])
    equal(client.models.retrieve(MODEL).object, "model")


@check
def chat():
    answer = client.chat.completions.create(model=MODEL, messages=says("Hi there"), temperature=0, seed=1)
    equal(answer.choices[0].message.content, "Hi there")
    equal(answer.choices[0].finish_reason, "stop")
    equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)


@check
def chat_streamed():
    stream = client.chat.completions.create(
        model=MODEL, messages=says("Hi there"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    equal("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "Hi there")
    equal([c.usage.completion_tokens for c in chunks if c.usage], [9])


@check
def chat_streamed_by_helper():
    with client.chat.completions.stream(model=MODEL, messages=says("Hi there")) as stream:
        kinds = {event.type for event in stream}
    assert "content.delta" in kinds, kinds
    equal(stream.get_final_completion().choices[0].message.content, "Hi there")


@check
def several_answers():
    answer = client.chat.completions.create(model=MODEL, messages=says("x"), n=3)
    equal([choice.index for choice in answer.choices], [0, 1, 2])


@check
def logprobs():
    answer = client.chat.completions.create(model=MODEL, messages=says("Hi"), logprobs=True)
    equal([(t.token, t.logprob) for t in answer.choices[0].logprobs.content], [("H", -0.5), ("i", -0.5)])


@check
def likeliest_tokens():
    request = {"model": MODEL, "messages": says("Hi"), "logprobs": True, "top_logprobs": 2}
    expected = [("H", [("I", -0.25), ("H", -0.5)]), ("i", [("j", -0.25), ("i", -0.5)])]

    def read(logprobs):
        return [(t.token, [(u.token, u.logprob) for u in t.top_logprobs]) for t in logprobs.content]

    equal(read(client.chat.completions.create(**request).choices[0].logprobs), expected)
    with client.chat.completions.stream(**request) as stream:
        for _ in stream:
            pass
    equal(read(stream.get_final_completion().choices[0].logprobs), expected)
    answer = client.completions.create(model=MODEL, prompt="<user>x</user><assistant>", logprobs=1)
    equal(answer.choices[0].logprobs.top_logprobs, [{"y": -0.25, "x": -0.5}])
    equal(refused(openai.BadRequestError, top_logprobs=1).param, "top_logprobs")


@check
def length_and_stop():
    answer = client.chat.completions.create(model=MODEL, messages=says("Hi there"), max_completion_tokens=2)
    equal((answer.choices[0].message.content, answer.choices[0].finish_reason), ("Hi", "length"))
    answer = client.chat.completions.create(model=MODEL, messages=says("Hi there"), stop=[" "])
    equal(answer.choices[0].message.content, "Hi")


@check
def parts_and_developer():
    content = [{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]
    messages = [{"role": "developer", "content": "Be brief"}, {"role": "user", "content": content}]
    answer = client.chat.completions.create(model=MODEL, messages=messages)
    equal(answer.choices[0].message.content, "Hi there")


@check
def tool_and_its_answer():
    messages = says(CALL)
    message = client.chat.completions.create(model=MODEL, messages=messages, tools=[ADD]).choices[0].message
    [call] = message.tool_calls
    equal(json.loads(call.function.arguments), {"a": 1})
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "2"}]
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=[ADD])
    equal(answer.choices[0].message.content, "2")


@check
def tool_streamed():
    with client.chat.completions.stream(model=MODEL, messages=says(CALL), tools=[ADD]) as stream:
        for _ in stream:
            pass
    choice = stream.get_final_completion().choices[0]
    equal(choice.finish_reason, "tool_calls")
    equal(choice.message.tool_calls[0].function.arguments, '{"a": 1}')


@check
def cut_call():
    answer = client.chat.completions.create(model=MODEL, messages=says(CALL), tools=[ADD], max_tokens=30)
    message = answer.choices[0].message
    equal((message.tool_calls, message.content), (None, CALL[:30]))
    equal(message.tool_call_errors, [{"reason": "cut", "raw": CALL[:30]}])


@check
def token_ids():
    answer = client.chat.completions.create(
        model=MODEL, messages=says("Hi"), extra_body={"return_token_ids": True}
    )
    equal(len(answer.prompt_token_ids), answer.usage.prompt_tokens)
    equal(len(answer.choices[0].token_ids), answer.usage.completion_tokens)
    equal(answer.choices[0].token_logprobs, [-0.5] * 3)


@check
def completion():
    answer = client.completions.create(model=MODEL, prompt="<user>world</user><assistant>", logprobs=0, echo=False)
    equal((answer.choices[0].text, answer.choices[0].logprobs.tokens), ("world", list("world")))
    stream = client.completions.create(model=MODEL, prompt="<user>world</user><assistant>", stream=True)
    equal("".join(chunk.choices[0].text for chunk in stream if chunk.choices), "world")


@check
def refusals():
    equal(refused(openai.NotFoundError, model="nobody").code, "model_not_found")
    equal(refused(openai.BadRequestError, response_format={"type": "json_object"}).param, "response_format")
    equal(refused(openai.BadRequestError, max_tokens=1, max_completion_tokens=2).param, "max_completion_tokens")
    equal(refused(openai.BadRequestError, messages=says("x" * 600)).code, "context_length_exceeded")
    stranger = openai.OpenAI(base_url=f"{url}/v1", api_key="another-key", max_retries=0)
    try:
        stranger.models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("another key was let in")


@check
def by_async_client():
    async def ask():
        other = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key)
        stream = await other.chat.completions.create(model=MODEL, messages=says("Hi there"), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    equal(asyncio.run(ask()), "Hi there")


failed = 0
for function in checks:
    try:
        function()
        print(f"ok {function.__name__}", flush=True)
    except Exception as error:  # a check that fails in any way is told, and the others go on
        failed += 1
        print(f"failed {function.__name__}: {type(error).__name__}: {error}", flush=True)
print(f"{len(checks) - failed} of {len(checks)} passed with openai {openai.__version__}")
sys.exit(1 if failed else 0)
