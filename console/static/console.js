// SPDX-License-Identifier: Apache-2.0
// The script formats numbers and times for the reader's locale, shows news while a page is open, and helps in the
// editor. The pages also work without the script.
"use strict";

const numbers = new Intl.NumberFormat();
for (const e of document.querySelectorAll("data[value]")) e.textContent = numbers.format(e.value);

const formats = {
  minute: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }),
  year: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }),
  date: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" }),
  day: new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" }),
};
const zone = formats.minute.resolvedOptions().timeZone;
if (zone && zone !== "UTC") document.getElementById("zone").textContent = zone + ", days in UTC";
const thisYear = new Date().getUTCFullYear();
for (const e of document.querySelectorAll("time[data-s]")) {
  const at = new Date(e.dateTime);
  let show = e.dataset.s;
  if (show === "minute" && at.getUTCFullYear() !== thisYear) show = "year";
  e.textContent = formats[show].format(at);
}

// News: the page says what has changed since it was loaded, but it does not update itself.
const news = document.getElementById("news");
if (news) {
  let first = null;
  const ask = async () => {
    const answer = first && document.hidden ? null : await fetch(document.body.dataset.news).catch(() => null);
    if (!answer || !answer.ok) return;
    const now = await answer.json();
    if (!first) { first = now; return; }
    const parts = [];
    if (now.policy !== first.policy) parts.push("another version of the policy is in force");
    if (now.alerts > first.alerts) parts.push("there is a new alert");
    if (now.requests > first.requests) parts.push(numbers.format(now.requests - first.requests) + " new requests");
    if (!parts.length) return;
    news.replaceChildren("Since this page was loaded: " + parts.join(", ") + ". ");
    const show = document.createElement("a");
    show.href = location.href;
    show.textContent = "Show";
    news.append(show);
  };
  ask();
  setInterval(ask, 5000);
}

// The first policy: a changed answer changes the draft.
const first = document.getElementById("first");
if (first) {
  let asked = 0;
  first.addEventListener("change", async () => {
    const mine = ++asked, body = new FormData(document.getElementById("change"));
    body.set("do", "answers");
    const answer = await fetch(location.href, { method: "POST", body });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked || !page.getElementById("live")) return;
    for (const e of first.querySelectorAll("[role=alert]")) e.remove();
    const alert = page.querySelector("#first [role=alert]");
    if (alert) first.querySelector("h2").after(alert);
    document.getElementById("live").replaceWith(page.getElementById("live"));
  });
}

const copy = document.querySelector(".copy");
if (copy) copy.addEventListener("focus", () => copy.select());

// The editor: line numbers, completion of keys, and Ctrl+Enter.
const text = document.getElementById("text");
if (text) {
  const form = text.form, gutter = document.querySelector(".gutter"), hint = document.getElementById("hint");
  const keys = text.dataset.keywords.trim().split(" ");
  let timer = 0;
  const number = () => {
    const n = text.value.split("\n").length;
    text.rows = n + 1;
    while (gutter.children.length > n) gutter.lastElementChild.remove();
    while (gutter.children.length < n) {
      const li = document.createElement("li");
      li.id = "L" + (gutter.children.length + 1);
      li.textContent = gutter.children.length + 1;
      gutter.append(li);
    }
  };
  const word = () => text.value.slice(0, text.selectionStart).match(/(^|[\s\-{,])([a-z][a-z-]*)$/);
  const proposals = () => {
    const at = word();
    return at && at[2].length > 1 ? keys.filter((k) => k.startsWith(at[2]) && k !== at[2]).slice(0, 6) : [];
  };
  const check = async () => {
    const body = new FormData(form);
    body.delete("file");
    const answer = await fetch("./diagnostics", { method: "POST", body });
    if (!answer.ok) return;
    const all = await answer.json();
    for (const li of gutter.children) { li.classList.remove("live"); li.removeAttribute("title"); }
    for (const d of all) {
      const li = gutter.children[d.line - 1];
      if (!li) continue;
      li.classList.add("live");
      li.title = d.message;
    }
    const worst = all.find((d) => d.severity === "error") || all[0];
    hint.textContent = worst ? "Line " + worst.line + ": " + worst.message : "No errors and no warnings.";
  };
  text.addEventListener("input", () => {
    number();
    const list = proposals();
    hint.textContent = list.length ? "Ctrl+Space inserts " + list[0] + (list.length > 1 ? " (or: " + list.slice(1).join(", ") + ")" : "") : "";
    clearTimeout(timer);
    timer = setTimeout(check, 900);
  });
  text.addEventListener("keydown", (e) => {
    if (e.ctrlKey && e.key === "Enter") { e.preventDefault(); form.querySelector("button.primary").click(); }
    if (e.ctrlKey && e.key === " ") {
      const list = proposals(), at = word();
      if (!list.length) return;
      e.preventDefault();
      text.setRangeText(list[0].slice(at[2].length), text.selectionStart, text.selectionEnd, "end");
      text.dispatchEvent(new Event("input"));
    }
  });
}
