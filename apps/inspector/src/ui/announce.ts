let region: HTMLElement | null = null;
let lastMs = -Infinity;
let timer: ReturnType<typeof setTimeout> | undefined;

const leastMs = 1500;

/** Says a text to readers of the screen, at most one each 1.5 s: a later text replaces one that waits. */
export function announce(text: string): void {
  region ??= createRegion();
  const target = region;
  clearTimeout(timer);
  const waitMs = Math.max(0, lastMs + leastMs - performance.now());
  timer = setTimeout(() => {
    lastMs = performance.now();
    target.textContent = text;
  }, waitMs);
}

function createRegion(): HTMLElement {
  const made = document.createElement("div");
  made.className = "hidden";
  made.setAttribute("role", "status");
  made.setAttribute("aria-live", "polite");
  document.body.append(made);
  return made;
}
