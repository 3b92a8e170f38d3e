// Compare: pin the picture as it is now beside the live one.

const makeCompare = (row, stage, image, model, button, words, make, refit) => {
  let pinned = null;
  const live = make("p", "course-picture-caption", stage);
  stage.prepend(live);
  live.textContent = words.live;
  const label = () => {
    button.textContent = pinned ? words.unpin : words.pin;
    live.hidden = !pinned;
  };
  button.onclick = () => {
    if (pinned) {
      URL.revokeObjectURL(pinned.querySelector("img").src);
      pinned.remove();
      pinned = null;
    } else {
      pinned = make("figure", "course-picture-pinned", row);
      make("p", "course-picture-caption", pinned).textContent = words.pinned;
      const strips = make("div", "course-picture-strips", pinned);
      const address = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
      const copies = makeStrips(strips, model.get("cuts"), make, "course-picture-pinned-image");
      show(copies, address, model.get("maps"));
      copies[0].image.alt = image.alt;
      const summary = image.alt.replaceAll(/\n +/g, "; ").replace(":;", ":");
      make("figcaption", "course-picture-help", pinned).textContent = summary;
    }
    label();
    refit();
  };
  label();
};
