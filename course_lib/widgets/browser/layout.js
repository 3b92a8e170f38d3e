// A picture in a small window: it shrinks, so that an explorer is seen whole, down to where its letters can still be read;
// in a narrow one its panels stand below one another.

const SMALLEST_SCALE = 0.72; // labels of 9 points keep 9 pixels on screen; a panel that does not fit then is scrolled
const SMALLEST_COMPARED = 0.7; // of two pictures that are compared
const WORDS = 44; // pixels for two lines of words below an explorer
const GAP = 16; // pixels between two pictures side by side, as in picture.css
const CAPTION = 20; // pixels for a line of words at a picture that is compared

// Cut the picture into strips, one per column of panels, each with a sheet that carries the whole picture.
// In a wide window they stand side by side and look like one picture.
const makeStrips = (parent, cuts, make, name = "course-picture-image") => {
  const edges = [0, ...cuts, 1];
  return edges.slice(1).map((right, number) => {
    const left = edges[number];
    const node = make("div", "course-picture-strip", parent);
    node.style.width = `calc(var(--course-width) * ${right - left})`;
    const sheet = make("div", "course-picture-sheet", node);
    sheet.style.marginLeft = `calc(var(--course-width) * ${-left})`;
    const image = make("img", number ? "course-picture-copy" : name, sheet);
    const copy = make("img", "course-picture-maps", sheet);
    copy.alt = "";
    if (number) image.alt = ""; // the first one says it all
    return { left, right, sheet, image, copy };
  });
};

// Show another picture. A dark theme makes what is light dark; a copy of the colour maps, cut out and laid over it, keeps
// the colours of their numbers.
const show = (strips, address, maps) => {
  const ways = maps.map(([l, t, r, b]) => [[l, t], [r, t], [r, b], [l, b], [l, t], [0, 0]]);
  const points = [[0, 0], ...ways.flat()].map((point) => point.map((one) => `${100 * one}%`).join(" "));
  for (const { image, copy } of strips) {
    image.src = copy.src = address;
    copy.style.clipPath = `polygon(evenodd, ${points})`;
  }
};

// What is seen of the notebook at a time.
const paneOf = (node) => node.closest(".jp-WindowedPanel-outer, .jp-NotebookPanel-notebook") ?? document.documentElement;

// Pixels of height that the pane leaves to the picture of an explorer.
const roomBelow = (explorer, stage, bar) => {
  const problem = explorer.querySelector(".course-problem[role=alert]")?.offsetHeight ?? 0;
  const above = stage.getBoundingClientRect().top - explorer.getBoundingClientRect().top - problem;
  return paneOf(explorer).clientHeight - above - bar.offsetHeight - WORDS;
};

// A pinned picture stands beside the live one where both can be read, otherwise below it; where the window is too low for
// both, it lies in the same place, and a button shows the one or the other.
const fit = (frame, strips, width, height, room) => {
  if (!frame.clientWidth) return; // not on the page
  const half = (frame.clientWidth - GAP) / 2;
  const pinned = Boolean(frame.querySelector(".course-picture-pinned"));
  const beside = pinned && half >= SMALLEST_COMPARED * width;
  frame.classList.toggle("course-picture-beside", beside);
  const across = beside ? half : frame.clientWidth;
  const smallest = pinned ? SMALLEST_COMPARED : SMALLEST_SCALE;
  const whole = across >= smallest * width;
  const widest = whole ? width : width * Math.max(...strips.map(({ left, right }) => right - left));
  const below = (room - 3 * CAPTION) / (2 * height);
  const alone = pinned && !beside && below < SMALLEST_COMPARED;
  frame.classList.toggle("course-picture-alone", alone);
  const one = (room - CAPTION * pinned) / height;
  const most = pinned && !beside && !alone ? below : whole ? one : 1;
  const scale = clamp(Math.min(across / widest, most), smallest, 1);
  frame.style.setProperty("--course-width", `${scale * width}px`);
  frame.style.setProperty("--course-height", `${scale * height}px`);
  frame.classList.toggle("course-picture-stacked", !whole);
};

// The picture of a cell that has just been run is scrolled into view, for a second or until somebody scrolls: with Shift + Enter,
// JupyterLab has gone on to the next cell before the picture is there.
const shownBefore = (window[Symbol.for("course: shown")] ??= new Set());
const FOLLOWED = 1000; // milliseconds

const stayInView = (explorer, id) => {
  const [cell, pane] = [explorer.closest(".jp-Cell"), paneOf(explorer)];
  const isNew = !shownBefore.has(id);
  shownBefore.add(id);
  const isNext = (other) => other?.matches(".jp-mod-active");
  if (!isNew || !cell || !(isNext(cell) || isNext(cell.nextElementSibling))) return () => {};
  const scroll = () => {
    const [inside, around] = [explorer.getBoundingClientRect(), pane.getBoundingClientRect()];
    const [above, below] = [inside.top - around.top - GAP / 2, inside.bottom - around.bottom + GAP / 2];
    if (above < 0) pane.scrollTop += above;
    else if (below > 0) pane.scrollTop += Math.min(above, below);
  };
  const watcher = new ResizeObserver(scroll);
  const kinds = ["wheel", "pointerdown", "keydown", "touchstart"];
  const stop = () => {
    clearTimeout(end);
    watcher.disconnect();
    pane.removeEventListener("scroll", scroll);
    for (const kind of kinds) pane.removeEventListener(kind, stop, true);
  };
  const end = setTimeout(stop, FOLLOWED);
  watcher.observe(explorer);
  pane.addEventListener("scroll", scroll);
  for (const kind of kinds) pane.addEventListener(kind, stop, true);
  return stop;
};
