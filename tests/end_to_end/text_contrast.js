// The ratio of each text's colour to its background (WCAG 2.2, relative luminance), as JSON.
(() => {
  const light = color => { const parts = color.match(/[\d.]+/g).slice(0, 3).map(part => part / 255)
    .map(part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2]; };
  const back = element => { for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor; if (!/, 0\)$|transparent/.test(color)) return color; } return 'rgb(255,255,255)'; };
  const found = {};
  for (const element of document.querySelectorAll('h1, h2, h3, p, dt, dd, td, th, li span, button, legend, label span')) {
    if (!element.textContent.trim() || !element.offsetParent) continue;
    const pair = [light(getComputedStyle(element).color), light(back(element))].sort((one, two) => two - one);
    found[element.tagName + ' ' + element.className + ' ' + element.textContent.slice(0, 20)] = (pair[0] + .05) / (pair[1] + .05);
  }
  return JSON.stringify(found);
})()
