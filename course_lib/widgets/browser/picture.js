// The browser's half of picture.py. The files beside this one are put before it.

const MOVING = 1; // pixels drawn per pixel on screen while a picture moves, as in picture.py
const REST = 300; // milliseconds without another picture

const download = (bytes, type, file) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// Called once per picture, also while its cell is not on the page.
const initialize = ({ model }) => {
  const last = new Image(); // where the picture has moved
  model.on("change:png", () => {
    URL.revokeObjectURL(last.src);
    last.src = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
  });
  const seen = () => ({
    "image/png": withLine(last, model.get("words").line, model.get("width")),
    "text/plain": model.get("described"),
  });
  keepInFile(model, () => (last.naturalWidth ? seen() : {}));
};

const render = ({ model, el }) => {
  const words = model.get("words");
  const frame = make("div", "course-picture", el);
  make("p", "course-problem course-picture-dead", frame).textContent = words.dead;
  const row = make("div", "course-picture-row", frame);
  const stage = make("div", "course-picture-stage", row);
  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", words.help || words.picture);
  const strips = makeStrips(make("div", "course-picture-strips", stage), model.get("cuts"), make);
  const sign = make("div", "course-picture-working", stage);
  Object.assign(sign, { ariaLive: "polite", hidden: true });
  const pointAgain = makePointer(stage, strips, model);
  const bar = make("div", "course-picture-bar", frame);
  const addButton = (text, onclick) => {
    const button = make("button", "course-picture-button", bar);
    return Object.assign(button, { type: "button", textContent: text, onclick });
  };

  for (const side of ["width", "height"]) frame.style.setProperty(`--course-${side}`, `${model.get(side)}px`); // at first
  let around = null; // the explorer, once the picture is on the page
  const refit = () => {
    const room = around && model.get("live") ? roomBelow(around, stage, bar) : Infinity;
    fit(frame, strips, model.get("width"), model.get("height"), room);
  };
  const undo = []; // what to do when the picture goes
  const buttons = model.get("live") ? { play: addButton("") , compare: addButton(""), flip: addButton(""), code: addButton("") } : null;
  addButton(words.png, () => download(model.get("png"), "image/png", `${model.get("name")}.png`));
  addButton(words.svg, () => model.send({ wanted: "svg" }));
  make("p", "course-picture-help course-picture-hint", bar).textContent = words.help;
  if (buttons) {
    buttons.flip.classList.add("course-picture-flip");
    undo.push(makeCode(make("code", "course-picture-code", frame), model, buttons.code, words));
    undo.push(makeCompare(frame, row, stage, strips[0].image, model, buttons.compare, buttons.flip, words, make, refit));
  }

  // Pictures that move are drawn with few pixels; on a dense screen the last one is drawn again once it rests.
  let [resting, sharp] = [null, false];
  const sharpen = () => {
    clearTimeout(resting);
    if (sharp || devicePixelRatio <= MOVING) return (sharp = false);
    resting = setTimeout(() => {
      sharp = true;
      model.send({ wanted: "sharp" });
    }, REST);
  };
  if (model.get("density") !== devicePixelRatio) {
    model.set("density", devicePixelRatio);
    model.save_changes();
  }

  let [shown, coming] = [null, null]; // addresses of pictures
  const swap = () => {
    const address = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
    if (coming) URL.revokeObjectURL(coming); // it was overtaken before it was shown
    coming = address;
    const [{ image }] = strips;
    image.onload = () => {
      if (shown) URL.revokeObjectURL(shown);
      [shown, coming] = [address, null];
    };
    show(strips, address, model.get("maps"));
    image.alt = model.get("summary");
    pointAgain();
    sharpen();
  };
  const save = (message, buffers) => {
    if (message.answer === "svg") download(buffers[0], "image/svg+xml", `${model.get("name")}.svg`);
  };
  model.on("change:png", swap);
  model.on("msg:custom", save);
  swap();

  const showProblem = () => {
    const problem = Boolean(model.get("problem"));
    frame.classList.toggle("course-picture-outdated", problem);
    for (const box of around?.querySelectorAll("input[type=text]") ?? []) box.ariaInvalid = String(problem);
  };
  model.on("change:problem", showProblem);
  const arranged = new ResizeObserver(() => {
    if (!around && el.isConnected) {
      around = el.closest(".course-explorer") ?? el;
      undo.push(prepareControls(around));
      if (buttons) undo.push(makePlay(around, model, buttons.play, words), showWork(around, model, sign, words));
      arranged.observe(around.firstElementChild); // the controls
      arranged.observe(paneOf(around));
      if (buttons) undo.push(stayInView(around, model.get("shown_in")));
    }
    refit();
  });
  arranged.observe(frame);
  return () => {
    arranged.disconnect();
    clearTimeout(resting);
    for (const one of undo) one();
    model.off("change:png", swap);
    model.off("change:problem", showProblem);
    model.off("msg:custom", save);
    for (const address of [shown, coming]) if (address) URL.revokeObjectURL(address);
  };
};

export default { initialize, render };
