// A picture in a narrow window: its panels stand below one another instead of shrinking until nothing can be read.

const SMALLEST_SCALE = 0.9; // labels of 10 points keep 9
const SMALLEST_STRIP = 0.55; // of a panel that is wider than the window; what does not fit then is scrolled
const SMALLEST_COMPARED = 0.7; // of two pictures that are compared
const AROUND = 280; // pixels for menus, controls and words around them
const GAP = 16; // pixels between two pictures side by side, as in picture.css

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

// A pinned picture stands beside the live one where both can be read, and below it otherwise, so that both are seen with
// the controls.
const fit = (frame, strips, width, height) => {
  if (!frame.clientWidth) return; // not on the page
  const half = (frame.clientWidth - GAP) / 2;
  const pinned = Boolean(frame.querySelector(".course-picture-pinned"));
  const beside = pinned && half >= SMALLEST_COMPARED * width;
  frame.classList.toggle("course-picture-beside", beside);
  const room = beside ? half : frame.clientWidth;
  const smallest = pinned ? SMALLEST_COMPARED : SMALLEST_SCALE;
  const whole = room >= smallest * width;
  const widest = whole ? width : width * Math.max(...strips.map(({ left, right }) => right - left));
  const most = pinned && !beside ? (innerHeight - AROUND) / (2 * height) : 1;
  const scale = clamp(Math.min(room / widest, most), whole ? smallest : SMALLEST_STRIP, 1);
  frame.style.setProperty("--course-width", `${scale * width}px`);
  frame.style.setProperty("--course-height", `${scale * height}px`);
  frame.classList.toggle("course-picture-stacked", !whole);
};
