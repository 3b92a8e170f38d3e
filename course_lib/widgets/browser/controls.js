// The controls of an explorer: their names, which keys they keep, and when a text box is read.

const PAUSE = 400; // milliseconds without a keystroke, after which a text is read

// The sliders of ipywidgets have a label and a readout beside them, but screen readers get neither: the name is missing,
// and the value is an index, an exponent, or rounded to one decimal.
const nameSliders = (explorer) => {
  for (const handle of explorer.querySelectorAll(".noUi-handle")) {
    const box = handle.closest(".widget-inline-hbox");
    const [label, readout] = [".widget-label", ".widget-readout"].map((part) => box?.querySelector(part)?.textContent);
    if (label && !handle.ariaLabel) handle.ariaLabel = label;
    if (readout && handle.ariaValueText !== readout) handle.ariaValueText = readout;
    const value = Number(readout?.replace("−", "-"));
    if (Math.abs(value - handle.ariaValueNow) < 0.06) handle.ariaValueNow = value; // was rounded
  }
};

// The rule of what can be typed is read out with the box.
const describeBoxes = (explorer) => {
  const rule = explorer.querySelector(".course-rule summary, .course-rule");
  if (!rule) return;
  rule.id ||= `course-rule-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
  for (const box of explorer.querySelectorAll("input[type=text]")) {
    if (box.getAttribute("aria-describedby") !== rule.id) box.setAttribute("aria-describedby", rule.id);
  }
};

// JupyterLab would move to another cell, insert cells or delete this one. Tab and shortcuts get through; Escape goes
// back to the cell.
const keepKeys = (event) => {
  if (event.key === "Escape") {
    document.activeElement.blur();
    event.currentTarget.closest(".jp-Cell")?.focus();
  }
  const leaves = ["Tab", "Escape"].includes(event.key) || (event.key === "Enter" && event.shiftKey);
  if (!leaves && !event.ctrlKey && !event.altKey && !event.metaKey) event.stopPropagation();
};

const press = (handle, key) => handle.dispatchEvent(new KeyboardEvent("keydown", { key }));

// noUiSlider takes End for the largest value that the slider was made with; its range may have grown since.
const goToEnd = ({ key, target }) => {
  if (key !== "End" || !target.matches(".noUi-handle")) return;
  for (let last = NaN; last !== target.ariaValueNow && target.ariaValueNow !== target.ariaValueMax; ) {
    last = target.ariaValueNow;
    press(target, "ArrowRight");
  }
};

// Prepare the controls around a picture; return a function that undoes it.
const prepareControls = (explorer) => {
  let pause = null;
  const readAfterPause = ({ target, isComposing }) => {
    if (isComposing || !target.matches("input[type=text]")) return;
    clearTimeout(pause);
    pause = setTimeout(() => target.dispatchEvent(new Event("change", { bubbles: true })), PAUSE);
  };
  explorer.addEventListener("keydown", keepKeys);
  explorer.addEventListener("keydown", goToEnd);
  explorer.addEventListener("input", readAfterPause);
  const prepare = () => (nameSliders(explorer), describeBoxes(explorer));
  prepare();
  const watcher = new MutationObserver(prepare);
  watcher.observe(explorer, { childList: true, subtree: true, attributeFilter: ["aria-valuetext"] });
  return () => {
    clearTimeout(pause);
    watcher.disconnect();
    explorer.removeEventListener("keydown", keepKeys);
    explorer.removeEventListener("keydown", goToEnd);
    explorer.removeEventListener("input", readAfterPause);
  };
};
