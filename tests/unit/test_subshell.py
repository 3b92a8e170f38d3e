"""A control moved in the browser: from the second move on, ipykernel runs the callback in another thread.

PyTorch's settings of a thread are fresh there: the notebook has switched gradients off, the thread has them.
"""

import json

from jupyter_client.manager import start_new_kernel

MADE = """
import threading, torch
from course_lib.checkpoints import phrase_translator
from course_lib.widgets import next_token_explorer

explorer = next_token_explorer(phrase_translator(), "the black cats do not see him .")
torch.set_grad_enabled(False)
control, seen = explorer.controls["temperature"], []
control.observe(lambda _: seen.append((threading.current_thread() is threading.main_thread(), torch.is_grad_enabled())), "value")
"""
FRESH = (
    'next_token_explorer(phrase_translator(), "the black cats do not see him .", temperature=0.5)'
)
SAID = f"""
import json
fresh = {FRESH}
problem = explorer._problem.value
print(json.dumps([control.value, seen, problem, explorer.summary == fresh.summary, explorer.picture.png == fresh.picture.png]))
"""


def test_a_control_moved_in_a_subshell_draws_what_it_draws_in_the_main_thread():
    manager, client = start_new_kernel(kernel_name="python3")
    printed = []

    def run(code):
        printed.clear()
        reply = client.execute_interactive(
            code,
            output_hook=lambda one: printed.append(one["content"].get("text", "")),
            timeout=120,
        )
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(printed)

    try:
        run(MADE)
        comm = run("print(control.model_id)").strip()
        asked = client.session.msg("create_subshell_request")
        client.control_channel.send(asked)
        subshell = client.get_control_msg(timeout=60)["content"]["subshell_id"]
        for count, value in enumerate((0.7, 0.5), start=1):
            data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
            moved = client.session.msg("comm_msg", {"comm_id": comm, "data": data})
            moved["header"]["subshell_id"] = subshell
            client.shell_channel.send(moved)
            run(f"import time\nwhile len(seen) < {count}:\n    time.sleep(0.1)\ntime.sleep(2)")
        value, seen, problem, same_words, same_picture = json.loads(run(SAID).splitlines()[-1])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert value == 0.5 and seen == [[True, False], [False, True]], "then in another thread"
    assert problem == "" and same_words and same_picture
