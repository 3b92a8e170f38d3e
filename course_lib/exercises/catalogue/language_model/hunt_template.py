"""Bug hunt: a conversation as tokens."""

import torch


def chat_tokens(messages, ids):
    tokens = []
    for role, content in messages:
        tokens += ids["start"] + ids[role] + ids["newline"]
        tokens += content + ids["end"] + ids["newline"]
    tokens += ids["start"] + ids["assistant"] + ids["newline"]  # the model continues here
    return torch.tensor(tokens)


_IDS = {"start": [1], "end": [2], "newline": [3], "system": [4], "user": [5], "assistant": [6, 7]}
_OTHERS = {
    "start": [90],
    "end": [0],
    "newline": [7],
    "system": [31, 36, 35],
    "user": [30],
    "assistant": [32],
}


START, END, LINE = 'ids["start"]', 'ids["end"]', 'ids["newline"]'
HEADER, CONTENT = f"{START} + ids[role] + {LINE}", f"content + {END} + {LINE}"
PROMPT = f'{START} + ids["assistant"] + {LINE}'
BUGS = f"""
{CONTENT} -> content + {LINE}
    no message ends with the end token, so nothing separates the question from the answer
{PROMPT} -> {START} + ids[role] + {LINE}
    the last header is the user's, so the model writes a question instead of an answer
"""
MISTAKES = f"""
{CONTENT} -> content
    End token and newline are missing after the content.
{CONTENT} -> content + {END}
    The newline after the end token is missing.
{CONTENT} -> content + {LINE} + {END}
    Newline and end token are exchanged: the end comes directly after the content.
{CONTENT} -> content + {LINE} + {END} + {LINE}
    There is a newline between content and end token that the template does not have.
{CONTENT} -> content + {START} + {LINE}
    Messages are closed with the start token.
{CONTENT} -> {END} + content + {LINE}
    The end token comes before the content.
{CONTENT} -> content + {END} + {END} + {LINE}
    Every message ends with two end tokens. The template has one.
{CONTENT} -> content + {END} + {LINE} + {LINE}
    Every message ends with two newlines. The template has one.
{HEADER} -> {START} + ids[role]
    The newline after the role is missing.
{HEADER} -> ids[role] + {LINE}
    The start token is missing.
{HEADER} -> {START} + {LINE}
    The role is missing in the header of a message.
{HEADER} -> {START} + ids["user"] + {LINE}
    Every message is the user's. Its role is the first of the pair.
{HEADER} -> ids[role] + {START} + {LINE}
    Start token and role are exchanged in the messages.
{HEADER} -> {START} + ids[role] + {END} + {LINE}
+ {CONTENT} -> content + {LINE}
    The end token comes after the role. It belongs directly after the content.
{PROMPT} -> []
    After the last message no answer begins: the generation prompt is missing.
{PROMPT} -> {START} + ids["assistant"]
    The generation prompt lacks the newline after the role.
{PROMPT} -> {START}
    The generation prompt is a start token alone, so the model chooses whose turn it is.
{PROMPT} -> ids["assistant"] + {LINE}
    The generation prompt lacks its start token.
{PROMPT} -> {PROMPT} + {END} + {LINE}
{PROMPT} -> {PROMPT} + {END}
    The answer is closed before the model has written it: no end token after the generation prompt.
{PROMPT} -> {PROMPT} + {LINE}
    The generation prompt ends with two newlines. The template has one.
{PROMPT} -> {START} + ids[messages[0][0]] + {LINE}
    The last header has the role of the first message. The assistant answers.
{PROMPT} -> {START} + ids["system"] + {LINE}
    The last header is the system's. The assistant answers.
{PROMPT} -> {PROMPT} + {LINE} + {END}
    After the header of the answer nothing follows: the model continues there.
{CONTENT} -> content + {LINE}
+ tokens += {PROMPT} -> tokens = tokens[: -len({LINE})] + {END} + {LINE} + {PROMPT}
    Only the last message is closed. Every message has an end token.
{CONTENT} -> content
+ {PROMPT} -> {END} + {LINE} + {PROMPT}
    Only the last message is closed. Every message has an end token and a newline.
{CONTENT} -> content + {LINE}
+ {PROMPT} -> {END} + {LINE} + {PROMPT}
    Only the last message is closed, and after its newline. Every message has an end token, directly after its
    content.
{CONTENT} -> content + ({END} if role == "user" else []) + {LINE}
    Only messages with the role user are closed. Every message has an end token.
{CONTENT} -> content + ({END} if role == "assistant" else []) + {LINE}
    Only messages with the role assistant are closed. Every message has an end token.
{CONTENT} -> content + ({END} if content is not messages[-1][1] else []) + {LINE}
    The last message is not closed. The question ends before the answer begins: every message has an end token.
in messages -> in messages[-1:]
    Only the last message is there. The model knows of a conversation what stands in its context, and nothing else.
in messages -> in messages[:-1]
    The last message is missing, which the model has to answer.
in messages -> in [one for one in messages if one[0] != "system"]
    The system message is left out.
in messages -> in [one for one in messages if one[0] != "assistant"]
    The earlier answers are left out. The model reads the whole conversation, its own part too.
in messages -> in messages[::-1]
    The messages are in reverse order: the oldest comes first.
in messages -> in sorted(messages, key=lambda one: ("user", "assistant", "system").index(one[0]))
in messages -> in sorted(messages, key=lambda one: ("system", "user", "assistant").index(one[0]))
    The messages are sorted by role. Keep the order of the conversation.
{CONTENT} -> {CONTENT} + {PROMPT}
+ {PROMPT} -> []
    The generation prompt stands after every message. It belongs after the last one, where the model continues.
tokens = [] -> tokens = {PROMPT}
+ {PROMPT} -> []
    The header of the answer stands in front of the first message. It belongs after the last one.
tokens = [] -> tokens = [*{END}]
    There is an end token in front of the first message.
tokens = [] -> tokens = [*{START}]
    There is a start token in front of the first header. Each header has one.
"""

CASES = (
    dict(messages=[("user", [8, 9])], ids=_IDS),
    dict(messages=[("system", [7]), ("user", [8, 9, 10])], ids=_IDS),
    dict(
        messages=[
            ("system", [11, 12]),
            ("user", [13]),
            ("assistant", [14, 15, 16]),
            ("user", [17, 18]),
        ],
        ids=_OTHERS,
    ),
    dict(messages=[("user", [5]), ("assistant", []), ("user", [6, 6])], ids=_OTHERS),
)
HINTS = """
Write down the tokens of one question by hand, and compare them with what the function returns.
Where does a message end? And whose turn is it when the model begins to write?
After the content: ids["end"] + ids["newline"]. After the last message: ids["start"] + ids["assistant"] +
    ids["newline"].
"""
DIFFERENTIABLE = False
