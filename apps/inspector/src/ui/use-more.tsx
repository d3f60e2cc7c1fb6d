import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../format.ts";

interface More {
  /** Is the number of items to show. */
  readonly shown: number;
  /** Shows the next items; null where all are shown. */
  readonly button: JSX.Element | null;
}

/** Shows a long list in steps, so that no view holds thousands of elements. The button says how many are left. */
export function useMore(total: number, what: string, step: number = 200): More {
  const [most, setMost] = useState(step);
  if (total <= most) return { shown: total, button: null };
  const next = Math.min(step, total - most);
  return {
    shown: most,
    button: (
      <p class="more">
        <button type="button" class="button" onClick={() => setMost(most + step)}>
          Show {count(next)} more {what}
        </button>{" "}
        <span class="soft">
          {count(most)} of {count(total)} shown
        </span>
      </p>
    ),
  };
}
