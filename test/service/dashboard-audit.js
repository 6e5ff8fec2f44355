// Runs in the page: what a person who sees little, hears the page or uses the keyboard would stumble over. Evaluates to a list of complaints.
// Names and roles are asked of the browser itself (dashboard.test.ts); here are structure, contrast and sizes.
(() => {
  const complaints = [];
  const say = (text) => complaints.push(text);
  const describe = (element) =>
    `<${element.tagName.toLowerCase()}${element.id ? ` #${element.id}` : ""} ${element.className || ""}> “${(element.textContent ?? "").trim().slice(0, 40)}”`;
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length > 0;
  const isHiddenText = (element) => element.closest(".hidden, [aria-hidden=true]") !== null;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(visible);

  if (document.documentElement.lang === "") say("the page does not say its language");
  if (document.title === "") say("the page has no title");
  for (const [what, selector] of [
    ["main", "main"],
    ["banner", "body header"],
    ["h1", "h1"],
  ])
    if (all(selector).length !== 1) say(`there are ${all(selector).length} ${what}`);

  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) say(`the id ${id} is used more than once`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "for", "aria-controls"])
    for (const element of document.querySelectorAll(`[${attribute}]`))
      for (const id of element.getAttribute(attribute).split(/\s+/)) if (!ids.includes(id)) say(`${attribute}=${id} of ${describe(element)} leads nowhere`);

  let level = 0;
  for (const heading of document.querySelectorAll("main h1, main h2, main h3, main h4, main h5")) {
    const own = Number(heading.tagName.charAt(1));
    if (own > level + 1) say(`a heading of level ${own} follows one of level ${level}: ${describe(heading)}`);
    level = own;
  }
  const navs = all("nav").map((nav) => nav.getAttribute("aria-label"));
  if (navs.includes(null) || new Set(navs).size < navs.length) say(`navigations need names of their own: ${navs.join(", ")}`);

  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) say(`no alt: ${describe(image)}`);
  for (const image of document.querySelectorAll("svg"))
    if (!image.closest("[aria-hidden=true]") && !image.getAttribute("aria-label")) say(`no text in place of ${describe(image)}`);
  for (const table of document.querySelectorAll("table")) {
    if (!table.closest("[aria-label], [aria-labelledby]")) say("a table without a name");
    for (const head of table.querySelectorAll("th")) if (!head.hasAttribute("scope")) say(`a heading of a table without scope: ${describe(head)}`);
    if (table.querySelector("thead th") === null) say("a table without headings");
  }
  for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) say(`tabindex ${element.tabIndex}: ${describe(element)}`);
  for (const element of document.querySelectorAll("[style]"))
    if (/url\(/.test(element.getAttribute("style"))) say(`a style with an address: ${describe(element)}`);

  // WCAG 2.2, 1.4.3 and 1.4.11: relative luminance of what is painted.
  const parse = (text) => {
    const numbers = (text.match(/[\d.]+%?/g) ?? []).map((each) => (each.endsWith("%") ? Number.parseFloat(each) / 100 : Number(each)));
    if (text.startsWith("rgb")) return { rgb: numbers.slice(0, 3).map((each) => each / 255), alpha: numbers[3] ?? 1 };
    if (text.startsWith("color(srgb")) return { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 };
    return { rgb: [0, 0, 0], alpha: 0 };
  };
  const over = (top, below) => top.rgb.map((each, at) => each * top.alpha + below[at] * (1 - top.alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) layers.push(parse(getComputedStyle(each).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [1, 1, 1]);
  };
  const contrast = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === "" || !element || !visible(element) || element.closest(".hidden, script, style, noscript, option") || element.closest(".skip"))
      continue;
    const style = getComputedStyle(element);
    const below = behind(element);
    const got = ratio(over(parse(style.color), below), below);
    const size = Number.parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (got < needed) contrast.set(`${style.color} on ${below.map((each) => Math.round(each * 255))}: ${got.toFixed(2)}`, describe(element));
  }
  for (const [what, where] of contrast) say(`contrast ${what} at ${where}`);
  for (const control of all("input, textarea, select, button:not(.link, .skip)")) {
    const style = getComputedStyle(control);
    if (control.type === "checkbox" || control.type === "radio") continue;
    const outside = behind(control.parentElement);
    const edge = ratio(over(parse(style.borderTopColor), outside), outside);
    const filled = ratio(behind(control), outside);
    if (Math.max(edge, filled) < 3 && control.getAttribute("aria-disabled") !== "true") say(`the edge of ${describe(control)} has contrast ${edge.toFixed(2)}`);
  }
  // 2.5.8: targets of 24 by 24 but for links in text.
  for (const control of all("button:not(.link), select, input:not([type=checkbox], [type=radio], [type=file])")) {
    const { width, height } = control.getBoundingClientRect();
    if (!isHiddenText(control) && (width < 24 || height < 24) && !control.matches(".skip"))
      say(`${describe(control)} is ${Math.round(width)} by ${Math.round(height)}`);
  }
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > window.innerWidth) {
    const wide = [...document.querySelectorAll("main *")].find(
      (element) => element.getBoundingClientRect().right > window.innerWidth + 1 && !element.closest(".tablebox, .tabs, .filters"),
    );
    say(`the page is ${scrollWidth} wide in a window of ${window.innerWidth}: ${wide ? describe(wide) : ""}`);
  }
  return complaints;
})();
