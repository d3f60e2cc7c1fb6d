import { useEffect, useRef, useState } from "preact/hooks";

export interface Canvas {
  readonly ref: { current: HTMLCanvasElement | null };
  readonly width: number;
  readonly height: number;
}

/** Gives the value of a color of the style sheet in the present theme. */
export type Tones = (name: string) => string;

/** Draws on a canvas: again after a change of `inputs`, of its size, and of the theme. */
export function useCanvas(
  draw: (at: CanvasRenderingContext2D, tones: Tones, size: Pick<Canvas, "width" | "height">) => void,
  inputs: readonly unknown[],
): Canvas {
  const ref = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    const watch = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const change = (): void => setTheme((turn) => turn + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", change);
    const own = new MutationObserver(change);
    own.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      system.removeEventListener("change", change);
      own.disconnect();
    };
  }, []);
  useEffect(() => {
    const element = ref.current;
    const at = element?.getContext("2d") ?? null;
    if (element === null || at === null || size.width === 0) return;
    const scale = devicePixelRatio;
    element.width = Math.round(size.width * scale);
    element.height = Math.round(size.height * scale);
    at.scale(scale, scale);
    draw(at, tonesOf(element), size);
  }, [...inputs, size, theme]);
  return { ref, ...size };
}

/** A property such as `--error` holds the colors of both themes, and only an element has the one that counts. */
function tonesOf(element: HTMLElement): Tones {
  return (name) => {
    element.style.color = `var(--${name})`;
    return getComputedStyle(element).color;
  };
}
