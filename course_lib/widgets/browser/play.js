// Play: sweep a slider, one step per picture, from where it is to its end and again from its start.

const BEAT = 150; // milliseconds from step to step, or longer if the picture takes longer

const stepOn = (handle) => press(handle, Number(handle.ariaValueNow) >= Number(handle.ariaValueMax) ? "Home" : "ArrowRight");

const canMove = (handle) => handle.isConnected && !handle.closest("[disabled]");

// The button plays the slider that was used last. With reduced motion, it takes a single step.
const makePlay = (explorer, model, button, words) => {
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  let [chosen, timer] = [null, null];
  const handle = () => (chosen && canMove(chosen) ? chosen : [...explorer.querySelectorAll(".noUi-handle")].find(canMove));
  const label = () => {
    const slider = handle();
    button.hidden = !slider;
    const verb = timer ? words.pause : reduced.matches ? words.step : words.play;
    button.textContent = `${verb} ${slider?.getAttribute("aria-label") ?? ""}`;
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    label();
  };
  const move = () => {
    const slider = handle();
    if (!slider || !button.isConnected) return stop();
    stepOn(slider);
    const [began, next] = [performance.now(), () => (timer = setTimeout(move, Math.max(0, began + BEAT - performance.now())))];
    const arrived = () => {
      model.off("change:png", arrived);
      if (timer) clearTimeout(timer), next();
    };
    model.on("change:png", arrived);
    timer = setTimeout(() => {
      model.off("change:png", arrived);
      stop(); // the kernel does not answer
    }, 2000);
  };
  button.onclick = () => {
    if (timer) return stop();
    if (!reduced.matches) move();
    else if (handle()) stepOn(handle());
    label();
  };
  const choose = ({ target }) => {
    if (!target.matches(".noUi-handle")) return;
    chosen = target;
    label();
  };
  const takeOver = ({ isTrusted, target }) => timer && isTrusted && target !== button && stop();
  const taken = ["pointerdown", "keydown"]; // a control that is moved by hand
  for (const kind of taken) explorer.addEventListener(kind, takeOver, true);
  explorer.addEventListener("focusin", choose);
  const labels = new MutationObserver(label); // sliders appear, and are switched off and on
  labels.observe(explorer, { subtree: true, attributeFilter: ["aria-label", "disabled"] });
  label();
  return () => {
    stop();
    labels.disconnect();
    explorer.removeEventListener("focusin", choose);
    for (const kind of taken) explorer.removeEventListener(kind, takeOver, true);
  };
};
