"""Words that code shows: one place, so that they can be translated.

The words of an exercise stand with the exercise, in `course_lib/exercises/catalogue/`.
"""

# Pictures and explorers
SAVE_PNG = "Save PNG"
SAVE_SVG = "Save SVG"
RESET = "Reset"
PICTURE_HELP = "Point at the picture to read exact values. By keyboard: ← → move, ↑ ↓ change row or panel, Esc ends."
CANNOT_DRAW = (
    "This setting cannot be drawn: {reason}. The picture still shows the last one that could."
)
TOO_LONG = "the text has {length} characters; there is room for {most}"
WROTE_TOO_MUCH = "the model wrote {length} tokens; there is room for {most}, so give the Translator max_length={most}"
NO_DATE = "which is no date"
TOO_MANY_TOKENS = "layer {layer!r} has {length} tokens; there is room for {most}"
TRAINING = "step {step} of {steps}, loss {loss}, {left} s left"
TRAINING_HERE = "While the model trains, its loss is drawn here."
TRAINED = "Loss while training, {steps} steps"
TRAINED_UNTIL = "Loss while training, ended by {stopped}"
LOSS_PICTURE_USED = "a LossPicture is for one training; make a new one for the next"
TRAINED_BELOW = ". The mean of the last 20 is below {below}: {reached}"

# The environment check
ENVIRONMENT_READY = "Ready: everything this notebook needs is installed."
ENVIRONMENT_MISSING = (
    "Not ready. {problems}\nTo repair it, run `make lab` in the course's folder, or: {command}"
)

# Reports of checks
NOT_A_FUNCTION = "check needs your function itself, e.g. check({name!r}, {name}). It got {came}."
UNKNOWN_EXERCISE = "There is no exercise called {name!r}.{meant} progress() lists all of them."
DID_YOU_MEAN = " Did you mean {name!r}?"
NOT_ATTEMPTED = "Not attempted yet. Replace the ... with your code and run the cell again."
PASSED = "Correct on all {cases} cases, values and gradients."
PASSED_WITHOUT_GRADIENTS = "Correct on all {cases} cases."
NESTED_CHECK = "This check was called from inside another one. Call check after the function, at the left margin."
STILL_AS_GIVEN = "The bug is still there."
HINT = "Hint {number} of {count}. {hint}"
NO_MORE_HINTS = "You have seen all {count} hints. solution({name!r}) shows a solution."
SOLUTION = "One solution of {name}:"
DIFFERENCES = {
    "none": "Your function returned None. Is a return statement missing?",
    "kind": "Your function returned {came}; {wanted} is expected.",
    "shape": "The shape is wrong: yours is {came}, {wanted} is expected.",
    "dtype": "The dtype is wrong: yours is {came}, {wanted} is expected.",
    "device": "The device is wrong: yours is {came}, {wanted} is expected.",
    "nan": "Your result holds NaN or infinity where finite numbers are expected.",
    "values": "The values differ.",
    "no_gradient": "The values are right, but no gradient flows back to {argument}. .item(), .detach(), .data, "
    "nn.Parameter(…), float(), NumPy and torch.no_grad() cut the path that a gradient would take.",
    "gradient": "The values are right, but the gradient with respect to {argument} is not. "
    "A constant added to a denominator does this where the denominator is small.",
    "nan_gradient": "The values are right, but the gradient with respect to {argument} holds NaN. Somewhere inside a "
    "NaN or infinity arose and was hidden afterwards; on the way back it returns. Keep it from arising.",
    "changed_input": "Your function changed its input {argument} in place. The caller still needs it; "
    "work on a copy, or use operations without a trailing underscore.",
    "exception": "Your code raised {came}.",
    "time": "Stopped after {seconds:g} seconds. Is there a loop that never ends?",
    "unreadable": "What your function returned breaks when it is looked at: {came}",
    "interrupted": "Stopped by you.",
}
SMALLEST_INPUT = "Smallest input that shows it:"
FIRST_DIFFERENCE = "First difference{where}:"
EXPECTED = "expected"
YOURS = "yours"
YOUR_LINE = "line {number} of your code: {text}"
PRINTED = "Your code printed: {text}"
UNKNOWN_NOTEBOOK = (
    "No notebook with exercises begins with {notebook!r}. progress() lists all of them."
)
PROGRESS_TITLE = "{passed} of {count} exercises solved."
PROGRESS_STATES = {"passed": "solved", "tried": "tried", "new": "not tried"}
