"""The texts that code shows, in one file, so that they can be translated.

The texts of an exercise are in its own file, in `course_lib/exercises/catalogue/`.
"""

# Pictures and explorers
PICTURE = {
    "png": "Save PNG",
    "svg": "Save SVG",
    "picture": "Picture",
    "code": "Copy code",
    "copied": "Copied",
    "pin": "Compare",
    "unpin": "End comparison",
    "show_pinned": "Show pinned",
    "show_live": "Show live",
    "pinned": "Pinned",
    "live": "Live",
    "play": "Play",
    "pause": "Pause",
    "step": "Step",
    "working": "Working …",
    "dead": "The kernel was restarted or stopped. Run this cell again to move the picture.",
}
STATIC = "A still picture: run this cell, in Jupyter or VS Code, to move it."
RESET = "Reset"
PICTURE_HELP = "Point at the picture to read exact values. By keyboard: ← → move, ↑ ↓ change row or panel, Esc ends."
PICTURE_CHOOSE = (
    "Point at the picture to read exact values; click a row, its name, a cell, a head or a word to choose it. By keyboard: "
    "the arrow keys move and choose, Esc ends."
)
PICTURE_TAKE = (
    "Point at a bar to read exact values; click it to take its token. By keyboard: the arrow keys move, Enter takes the "
    "token, Esc ends."
)
CANNOT_DRAW = (
    "This setting cannot be drawn: {reason}. The picture still shows the last one that could."
)
SHOWN_TWICE = (
    "This explorer is already shown in another cell. If it were shown twice, both pictures would change together, "
    "and the first would no longer match the text around it. Make a second explorer{code}"
)
EMPTY_TEXT = "the text is empty; type {rule}"
RULE_OF_WORDS = "an English sentence of words that the model knows"
RULE_OF_KNOWN_WORDS = "words that the model knows, separated by spaces"
RULE_OF_LETTERS = (
    "twelve letters from A to H, then four positions from 0 to 11: HGFEDCBAHGFE 5 7 0 3"
)
RULE_OF_TRANSLATIONS = "an English sentence, such as a caption of a photograph"
RULE_OF_DATES = "a date in a European language, at most {most} characters"
RULE_OF_ANYTHING = "any text"
RULE_OF_TEXTS = "any text of 2 to {most} tokens"
RULE_OF_PROMPTS = "any text, which the model continues"
RULE_OF_BLEU = (
    "1 to {most} words, separated by spaces; up to {references} references, with | between"
)
NEVER_SEEN = (
    "no token of the vocabulary has {characters}, so training had it rarely or never; type {rule}"
)
TOO_LONG = "the text has {length} characters; at most {most} can be shown"
WROTE_TOO_MUCH = "the model generated {length} tokens; at most {most} can be shown, so give the Translator max_length={most}"
NO_DATE = "which is not a date"
TOO_MANY_TOKENS = "layer {layer!r} has {length} tokens; at most {most} can be shown"
TOO_FEW_TOKENS = "the text needs at least 2 tokens, and has {length}"
TEXT_OF_TOO_MANY_TOKENS = "the text has {length} tokens; at most {most} can be shown"
NOTHING_OCCURS_TWICE = "no token of the text occurs twice, so there is nothing to copy"
GENERATE = "Generate"
NEXT_TOKEN = "Next token"
STOP = "Stop"
GENERATED_TEXT = "the text and its continuation"
GENERATED_HELP = "Click a bar to go on with its token. Generated tokens are bold. The less probable the model found one, the stronger its colour; point at it for the number."
TRAINING = "step {step:,} of {steps:,}, {losses}, {left:.0f} s left"
TRAINING_FREELY = "step {step:,}, {losses}"
TRAINED = "Training loss, {steps:,} steps"
TRAINED_UNTIL = "Training loss, stopped after {step:,} of {steps:,} steps"
TRAINED_FREELY = "Training loss"
ANSWERS = ("after step", "answer")
ANSWERED = "What the model answered while it was trained."
LOSS_PICTURE_USED = "a LossPicture shows one training run; make a new one for the next"

# The environment check
ENVIRONMENT_READY = "Ready: everything this notebook needs is installed."
ENVIRONMENT_MISSING = (
    "Not ready. {problems}\nTo repair it, run `make lab` in the course's folder, or: {command}"
)

# Errors of cells
FROM_AN_EARLIER_CELL = (
    "{name} comes from an earlier cell of this notebook: choose Run > Run All Above Selected Cell."
)
STOPPED = "You stopped this cell in line {line}: {code}"
STOPPED_IN = "You stopped this cell in line {line} of {function}: {code}"

# Reports of checks
NOT_A_FUNCTION = (
    "check needs your function itself, e.g. check({name!r}, {name}). It received {came}."
)
UNKNOWN_EXERCISE = "There is no exercise called {name!r}.{meant} progress() lists all of them."
DID_YOU_MEAN = " Did you mean {name!r}?"
NOT_ATTEMPTED = "Not attempted yet. Replace the ... with your code and run the cell again."
PASSED = "Correct on all {cases} cases, values and gradients."
PASSED_WITHOUT_GRADIENTS = "Correct on all {cases} cases."
NESTED_CHECK = "This check was called from inside another one. Call check after the function, at the left margin."
STILL_AS_GIVEN = "The bug is still there."
ALL_BUGS_LEFT = "None of the {count} bugs is repaired yet."
BUGS_LEFT = "{repaired} of {count} bugs repaired. Still wrong: {symptoms}."
BUG_AND_MISTAKE = "{one} And there is another mistake. {other}"
TWO_MISTAKES = "There are two mistakes. {one} {other}"
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
    "values": "The values differ.{measured}",
    "no_gradient": "The values are right, but no gradient flows back to {argument}. .item(), .tolist(), .detach(), "
    ".data, torch.tensor(…), nn.Parameter(…), float(), NumPy and torch.no_grad() remove a result from the computation graph.",
    "no_backward": "The values are right, but backpropagation to {argument} fails: an operation in place (+=, x[…] = …, a "
    "trailing underscore) overwrote a tensor that it needs. Make a new tensor instead.",
    "gradient": "The values are right, but the gradient with respect to {argument} is not. Either a part of the "
    "computation is cut out of the graph (.item(), .detach(), .data, float(), torch.tensor(…)), or a small constant is "
    "added to a denominator.",
    "nan_gradient": "The values are right, but the gradient with respect to {argument} holds NaN. An intermediate "
    "result is NaN or infinite and is masked afterwards; backpropagation still passes through it. Change the input of "
    "the operation that produces it, not its result.",
    "too_large": "The values are right, but your code makes a tensor of shape {shape} on the way. In the case below "
    "none may have more than {most:,} elements.",
    "changed_input": "Your function changed its input {argument} in place. x += …, x[…] = …, append, and methods with a "
    "trailing underscore change the object of the caller, who still needs it; x = x + … makes a new one.",
    "exception": "Your code raised {came}.",
    "time": "Stopped after {seconds:g} seconds. Is there an infinite loop?",
    "unreadable": "The value that your function returned raises an error when it is inspected: {came}",
    "interrupted": "You interrupted the check.",
}
RELATIONS = {
    "near": "Yours is close to the expected result: off by at most {size:.0e} of its largest element.",
    "factor": "Yours is {numbers} times the expected result, in every element.",
    "factors": "Yours is a multiple of the expected result: {numbers} times it in the cases that differ.",
    "more": "Yours is the expected result plus {numbers}, in every element.",
    "less": "Yours is the expected result minus {numbers}, in every element.",
    "mores": "Yours is the expected result plus a constant: {numbers} in the cases that differ.",
    "sign": "Yours is the expected result with the opposite sign.",
    "zero": "Yours is 0 everywhere.",
    "exchanged": "Yours is the expected result with the axes {axes} exchanged.",
    "permuted": "Yours is the expected result with its axes in another order: yours.permute{order} would be right.",
    "reshaped": "Yours holds the expected numbers in the expected order, in another shape.",
    "flipped": "Yours is the expected result in reverse order along axis {axis}.",
    "late": "Yours comes one position late along axis {axis}.",
    "early": "Yours comes one position early along axis {axis}.",
    "order": "Yours holds the expected slices along axis {axis}, in another order.",
    "function": "The expected result is {name} of yours, element by element.",
    "softmax": "The expected result is the softmax of yours along axis {axis}.",
    "softmax_of": "Yours is the softmax of the expected result along axis {axis}.",
    "normalised": "The expected result is yours divided by its sum along axis {axis}.",
    "reduce": "Yours has one axis more: its {name} along axis {axis} is the expected result.",
    "reduced": "Yours has one axis less: it is the {name} of the expected result along axis {axis}.",
    "sum_elsewhere": "The expected result sums to 1 along axis {wanted}; yours sums to 1 along axis {came}.",
    "sum_nowhere": "The expected result sums to 1 along axis {wanted}; yours does not.",
    "only_first": "Along axis {axis}, yours is right at index 0 only.",
    "only_last": "Along axis {axis}, yours is right at the last index only.",
    "not_first": "Along axis {axis}, yours is right everywhere but at index 0.",
    "not_last": "Along axis {axis}, yours is right everywhere but at the last index.",
    "unused": "Yours does not change when {argument} changes; the expected result does.",
    "cases": "Yours is right in {right} of {count} cases.",
}
SMALLEST_INPUT = "Smallest input that shows it:"
FIRST_DIFFERENCE = "First difference{where}:"
EXPECTED = "expected"
YOURS = "yours"
RAISED = "Your code raised {came}"
YOUR_LINE = "line {number} of your code: {text}"
OTHER_DTYPE = "Your result is {came}, that of the reference {wanted}; the values are what counts."
PRINTED = "Your code printed: {text}"
UNKNOWN_NOTEBOOK = (
    "No notebook with exercises begins with {notebook!r}. progress() lists all of them."
)
PROGRESS_TITLE = "{passed} of {count} exercises solved."
PROGRESS_STATES = {"passed": "solved", "tried": "tried", "new": "not tried"}

# The learner's copy of the notebooks
BOTH_CHANGED = "The course and you have both changed {mine}: yours is kept, the new version is {new} beside it."
LESSON_RENAMED = (
    "The course calls {mine} {new} now. Yours stays under its old name, with what you wrote in it."
)
LESSON_REMOVED = "The course has no {mine} any more. Yours stays."
NO_NOTEBOOK = (
    "{mine} cannot be opened: what is in it is no notebook. Start it again with "
    "`python -m course_lib.lab.working_copy --reset {number}`, which keeps the file under another name."
)
UNKNOWN_LESSON = "There is no notebook {lesson!r}; there are {numbers}."
RESET_DONE = "Started again. Your version is kept as {kept}."
RESET_KEPT = "Your version is {kept}, in the same folder; the list on the left shows it."
RESET_BUTTON = {
    "button": "Start this notebook again",
    "question": "Start this notebook again?",
    "kept": "It becomes as the course gave it to you. Your version is kept beside it, with “old” after its number.",
    "cancel": "Cancel",
    "again": "Start again",
    "done": "The notebook is as at the beginning",
    "failed": "The notebook could not be started again",
    "close": "OK",
}
CANNOT_WRITE_WORK = (
    "The course keeps your copies of the notebooks in {folder}, and cannot write there: {error}"
)
