// Explorers without a kernel: the same controls play the states that record.py wrote. Pictures that are shown smaller
// than they are can be enlarged.

const BEAT = 150; // milliseconds from step to step of Play
const LEGIBLE = 0.66; // of a picture or a panel: letters of 10 points keep 9 pixels; what does not fit then is scrolled
const recordings = {}; // name of an explorer → what begins to play it

const recordedStates = (name, recorded) => recordings[name](recorded);

// What goes on beyond the right edge fades there.
const fade = (holder) => {
  const see = () => holder.classList.toggle("course-more", holder.scrollLeft + holder.clientWidth < holder.scrollWidth - 2);
  holder.addEventListener("scroll", see);
  for (const node of [holder, ...holder.children]) new ResizeObserver(see).observe(node);
};

const makePlayer = (figure) => {
  const { frames, name, cuts } = figure.dataset;
  const find = (selector) => figure.querySelector(selector);
  const [fieldset, words, problem, stage] = ["fieldset", "figcaption [role=status]", "[role=alert]", ".course-picture-stage"].map(find);
  const still = stage.querySelector("img"); // without scripts, and until the states are there
  const [playing, reset] = fieldset.querySelectorAll("button");
  const controls = [...fieldset.querySelectorAll("label")].map((label) => {
    const input = label.querySelector("input, select");
    const stops = JSON.parse(input.dataset.stops ?? "null") ?? [...(input.options ?? [])].map((option) => option.text);
    return { input, stops, output: label.querySelector("output"), number: Number(label.dataset.number), at: Number(label.dataset.at) };
  });
  let [timer, lastSlider] = [null, controls.find(({ output }) => output)];
  const halt = () => {
    clearInterval(timer);
    timer = null;
    playing.textContent = "Play";
  };
  playing.hidden = !lastSlider;

  // Panels side by side where they can be read, below one another on a phone; they are drawn, because a picture that is
  // laid over another one and shrunk with it leaves traces of that one.
  const drawn = () => {
    const holder = still.parentNode;
    const strips = makeStrips(holder, JSON.parse(cuts), (tag, ...rest) => make(tag === "img" ? "canvas" : tag, ...rest));
    still.remove();
    const [width, height] = [still.getAttribute("width"), still.getAttribute("height")].map(Number);
    const widest = width * Math.max(...strips.map(({ left, right }) => right - left));
    strips[0].image.setAttribute("role", "img");
    const refit = () => {
      const room = holder.clientWidth;
      const whole = room >= LEGIBLE * width;
      const scale = clamp(room / (whole ? width : widest), LEGIBLE, 1);
      figure.style.setProperty("--course-width", `${scale * width}px`);
      figure.style.setProperty("--course-height", `${scale * height}px`);
      figure.classList.toggle("course-picture-stacked", !whole);
      if (holder.scrollWidth > holder.clientWidth) holder.tabIndex = 0; // to be scrolled by keyboard
      else holder.removeAttribute("tabindex");
    };
    new ResizeObserver(refit).observe(figure);
    refit();
    fade(holder);
    return strips;
  };
  const pictureOf = (file) => Object.assign(new Image(), { src: frames + file });
  const draw = async (strips, pictures) => {
    await Promise.all(pictures.map((picture) => picture.decode()));
    if (strips.wanted !== pictures) return; // overtaken
    for (const canvas of strips.flatMap(({ image, copy }) => [image, copy])) {
      [canvas.width, canvas.height] = [pictures[0].naturalWidth, pictures[0].naturalHeight];
      for (const picture of pictures) canvas.getContext("2d").drawImage(picture, 0, 0);
    }
    strips[0].image.dataset.shown = pictures[1].src;
  };

  recordings[name] = ({ names, states, frames: files, texts, regions, maps }) => {
    for (const region of regions) {
      if (region.values) region.values = new DataView(Uint8Array.from(atob(region.values), (c) => c.charCodeAt(0)).buffer);
    }
    const start = names.map((_, number) => controls.find((one) => one.number === number)?.at ?? 0);
    let [place, hover] = [start, []];
    const model = {
      get: (what) => (what === "hover" ? hover : {}),
      set: (_, { controls: chosen }) => {
        const wanted = [...place];
        for (const [control, value] of Object.entries(chosen)) {
          const found = controls.find(({ number }) => names[number] === control);
          if (!found) return; // nothing that was recorded
          const named = found.stops.indexOf(String(value));
          wanted[names.indexOf(control)] = named < 0 ? nearest(found.stops.map(Number), value) : named;
        }
        go(wanted, names.indexOf(Object.keys(chosen)[0]));
      },
      save_changes: () => {},
    };
    const strips = drawn();
    const base = pictureOf(still.getAttribute("src").split("/").pop());
    const pointAgain = makePointer(stage, strips, model);

    // The recorded state with the fewest other controls changed, and these by the fewest stops.
    const closest = (wanted, moved) => {
      const far = (key) =>
        key.split(",").reduce((sum, stop, n) => sum + (stop == wanted[n] ? 0 : n === moved ? 1e6 : 1e3 + Math.abs(stop - wanted[n])), 0);
      return Object.keys(states).reduce((best, key) => (far(key) < far(best) ? key : best));
    };
    const go = (wanted, moved) => {
      const key = states[wanted] ? String(wanted) : closest(wanted, moved);
      const [frame, text, spots, at, off, boxes] = states[key];
      problem.hidden = Boolean(states[wanted]);
      place = at || key.split(",").map(Number);
      hover = spots.map((spot) => regions[spot]);
      for (const { input, stops, output, number } of controls) {
        if (input.options) input.selectedIndex = place[number];
        if (output) {
          input.value = place[number];
          output.textContent = input.ariaValueText = stops[place[number]];
        }
        input.disabled = off.includes(number);
      }
      strips[0].image.ariaLabel = texts[text];
      words.textContent = texts[text].replace(":\n  ", ": ").replaceAll("\n  ", "; ");
      strips.wanted = [base, pictureOf(files[frame])];
      show(strips, frames + files[frame], maps[boxes]);
      draw(strips, strips.wanted);
      pointAgain();
    };
    const move = ({ input, number }) =>
      go(place.with(number, input.options ? input.selectedIndex : Number(input.value)), number);
    for (const control of controls) {
      control.input.oninput = () => (halt(), move(control));
      control.input.onfocus = () => {
        if (control.output) lastSlider = control;
        for (const n of control.stops.keys()) {
          const state = states[place.with(control.number, n)];
          if (state) pictureOf(files[state[0]]);
        }
      };
    }
    const stepOn = () => {
      const { input, number, stops } = lastSlider;
      go(place.with(number, (Number(input.value) + 1) % stops.length), number);
    };
    playing.onclick = () => {
      if (timer) return halt();
      stepOn();
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      timer = setInterval(stepOn, BEAT);
      playing.textContent = "Pause";
    };
    reset.onclick = () => (halt(), go(start, 0));
    fieldset.disabled = false;
    go(start, 0);
  };

  // The states come as a script, since a page that is opened from a folder may read no other file.
  const load = new IntersectionObserver(
    ([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      load.disconnect();
      document.head.append(Object.assign(document.createElement("script"), { src: `${frames}${name}.js` }));
    },
    { rootMargin: "600px" },
  );
  load.observe(figure);
};

// A picture without room gets a button that shows it in its own size, to be scrolled.
const makeLarger = (image) => {
  let around = image.closest(".course-scroll");
  if (!around) {
    around = Object.assign(document.createElement("div"), { className: "course-scroll", tabIndex: 0 });
    image.replaceWith(around);
    around.append(image);
  }
  const button = Object.assign(document.createElement("button"), { type: "button", className: "course-picture-button course-larger" });
  around.after(button);
  const label = (large) => (button.textContent = large ? "Fit to the page" : "Enlarge the picture");
  button.onclick = () => label(around.classList.toggle("course-large"));
  label(false);
  const sized = () => {
    const width = image.getAttribute("width") ?? image.naturalWidth;
    image.style.width = `clamp(${LEGIBLE * width}px, 100%, ${width}px)`;
    new ResizeObserver(() => (button.hidden = width <= around.clientWidth * 1.1)).observe(around);
    fade(around);
  };
  if (image.complete || image.hasAttribute("width")) sized();
  else image.onload = sized;
};

for (const figure of document.querySelectorAll(".course-player")) makePlayer(figure);
for (const image of document.querySelectorAll(".bd-article img:not(.course-player img)")) makeLarger(image);
