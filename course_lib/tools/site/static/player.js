// Explorers without a kernel: the same controls play the states that record.py wrote. Pictures that are shown smaller
// than they are can be enlarged.

const BEAT = 150; // milliseconds from step to step of Play
const recordings = {}; // name of an explorer → what begins to play it

const recordedStates = (name, recorded) => recordings[name](recorded);

const makePlayer = (figure) => {
  const { frames, name } = figure.dataset;
  const find = (selector) => figure.querySelector(selector);
  const [fieldset, words, problem, stage] = ["fieldset", "figcaption [role=status]", "[role=alert]", ".course-picture-stage"].map(find);
  const [image, overlay] = stage.querySelectorAll("img");
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

  recordings[name] = ({ names, states, frames: files, texts, regions }) => {
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
          const { stops } = controls.find(({ number }) => names[number] === control);
          wanted[names.indexOf(control)] = nearest(stops.map(Number), value);
        }
        show(wanted, names.indexOf(Object.keys(chosen)[0]));
      },
      save_changes: () => {},
    };
    const pointAgain = makePointer(stage, [{ sheet: stage.firstElementChild, image, right: 1 }], model);

    // The recorded state with the fewest other controls changed, and these by the fewest stops.
    const closest = (wanted, moved) => {
      const far = (key) =>
        key.split(",").reduce((sum, stop, n) => sum + (stop == wanted[n] ? 0 : n === moved ? 1e6 : 1e3 + Math.abs(stop - wanted[n])), 0);
      return Object.keys(states).reduce((best, key) => (far(key) < far(best) ? key : best));
    };
    const show = (wanted, moved) => {
      const key = states[wanted] ? String(wanted) : closest(wanted, moved);
      const [frame, text, spots, at, off] = states[key];
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
      image.alt = texts[text];
      words.textContent = texts[text].replace(":\n  ", ": ").replaceAll("\n  ", "; ");
      overlay.src = frames + files[frame];
      overlay.hidden = false;
      pointAgain();
    };
    const move = ({ input, number }) =>
      show(place.with(number, input.options ? input.selectedIndex : Number(input.value)), number);
    for (const control of controls) {
      control.input.oninput = () => (halt(), move(control));
      control.input.onfocus = () => {
        if (control.output) lastSlider = control;
        for (const n of control.stops.keys()) {
          const state = states[place.with(control.number, n)];
          if (state) new Image().src = frames + files[state[0]];
        }
      };
    }
    const stepOn = () => {
      const { input, number, stops } = lastSlider;
      show(place.with(number, (Number(input.value) + 1) % stops.length), number);
    };
    playing.onclick = () => {
      if (timer) return halt();
      stepOn();
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      timer = setInterval(stepOn, BEAT);
      playing.textContent = "Pause";
    };
    reset.onclick = () => (halt(), show(start, 0));
    fieldset.disabled = false;
    show(start, 0);
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
  const width = image.getAttribute("width") ?? image.naturalWidth;
  new ResizeObserver(() => (button.hidden = width <= around.clientWidth * 1.1)).observe(around);
};

for (const figure of document.querySelectorAll(".course-player")) makePlayer(figure);
for (const image of document.querySelectorAll(".bd-article img:not(.course-frame)")) makeLarger(image);
