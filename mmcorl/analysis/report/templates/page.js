"use strict";

// Which lines the charts show. Their ids are line-RUN-AGENT-KEY and band-RUN-AGENT-KEY.
const boxes = [...document.querySelectorAll(".legend input")];
function showLines() {
  const off = (kind) => new Set(boxes.filter((box) => !box.checked && kind in box.dataset).map((box) => box.dataset[kind]));
  const runs = off("run"), agents = off("agent");
  for (const line of document.querySelectorAll('#curves [id^="line-"], #curves [id^="band-"]')) {
    const [, run, agent] = line.id.split("-");
    line.style.display = runs.has(run) || agents.has(agent) ? "none" : "";
  }
}
boxes.forEach((box) => box.addEventListener("change", showLines));
showLines();  // a browser keeps the state of boxes over a reload

// The browser of samples: one article at a time. Without this script all of them are shown.
const browser = document.getElementById("browser");
if (browser) {
  const articles = [...browser.querySelectorAll(".sample")];
  const select = document.getElementById("sample");
  const place = document.getElementById("place");
  const buttons = [...browser.querySelectorAll("[data-turn]")];
  let current = 0;

  function show(number) {
    current = Math.min(Math.max(number, 0), articles.length - 1);
    articles.forEach((article, index) => { article.hidden = index !== current; });
    select.value = articles[current].id;
    place.textContent = `${current + 1} of ${articles.length}`;
    for (const button of buttons) {
      const reached = current + Number(button.dataset.turn);
      button.setAttribute("aria-disabled", String(reached < 0 || reached >= articles.length));
    }
  }
  function turnTo(number) {
    show(number);
    history.replaceState(null, "", `#${articles[current].id}`);
  }
  function fromAddress() {
    const found = articles.findIndex((article) => article.id === location.hash.slice(1));
    if (found >= 0) show(found);
  }
  buttons.forEach((button) => button.addEventListener("click", () => turnTo(current + Number(button.dataset.turn))));
  select.addEventListener("change", () => turnTo(articles.findIndex((article) => article.id === select.value)));
  browser.addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const plain = !(event.altKey || event.ctrlKey || event.metaKey || event.shiftKey);
    if (turn && plain && event.target !== select) {
      event.preventDefault();
      turnTo(current + turn);
    }
  });
  addEventListener("hashchange", fromAddress);
  show(0);
  fromAddress();
}

// While a run goes on, its server is asked for a newer page.
const seconds = Number(document.body.dataset.pollSeconds || 0);
if (seconds) {
  setInterval(async () => {
    try {
      const answer = await fetch("/version", { cache: "no-store" });
      if (answer.ok && (await answer.text()) !== document.body.dataset.version) location.reload();
    } catch {
      // The server has ended; the page stays as it is.
    }
  }, 1000 * seconds);
}
