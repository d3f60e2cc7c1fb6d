import type { JSX } from "preact";

/** Shows how full the context is, as a bar and in words. The number is the server's. */
export function Gauge({ percent }: { readonly percent: number | null }): JSX.Element | null {
  if (percent === null) return null;
  const tone = percent >= 90 ? "full" : percent >= 75 ? "high" : "";
  return (
    <span class={`gauge ${tone}`}>
      <span class="gauge-bar" aria-hidden="true">
        <span style={{ width: `${Math.min(100, percent)}%` }} />
      </span>
      {Math.round(percent)} %<span class="hidden"> of the context is used</span>
    </span>
  );
}
