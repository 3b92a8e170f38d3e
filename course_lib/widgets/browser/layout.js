// A picture in a narrow window: its panels stand below one another instead of shrinking until nothing can be read.

const SMALLEST_SCALE = 0.9; // labels of 10 points keep 9
const SMALLEST_BESIDE = 0.7; // of two pictures that are compared
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

// A pinned picture stands beside the live one where both can be read, their panels one below the other if need be.
const fit = (frame, strips, width, height) => {
  if (!frame.clientWidth) return; // not on the page
  const half = (frame.clientWidth - GAP) / 2;
  const widestStrip = width * Math.max(...strips.map(({ left, right }) => right - left));
  const pinned = frame.querySelector(".course-picture-pinned");
  const beside = Boolean(pinned) && half >= SMALLEST_BESIDE * widestStrip;
  frame.classList.toggle("course-picture-beside", beside);
  const room = beside ? half : frame.clientWidth;
  const smallest = beside ? SMALLEST_BESIDE : SMALLEST_SCALE;
  const whole = room >= smallest * width;
  const widest = whole ? width : widestStrip;
  const scale = clamp(room / widest, smallest, 1);
  frame.style.setProperty("--course-width", `${scale * width}px`);
  frame.style.setProperty("--course-height", `${scale * height}px`);
  frame.classList.toggle("course-picture-stacked", !whole);
};
