import type { JSX } from "preact";
import { count } from "../../format.ts";

type Tone = "one" | "two" | "three" | "four";

interface TokenPartsProps {
  readonly parts: readonly (readonly [name: string, tokens: number, tone: Tone])[];
  /** Is the whole in tokens: the window, else the sum of the parts. */
  readonly whole: number;
}

/** Shows what a request holds as one bar, with the number of each part. */
export function TokenParts({ parts, whole }: TokenPartsProps): JSX.Element {
  return (
    <>
      <div class="stack" aria-hidden="true">
        {parts.map(([name, tokens, tone]) => (
          <span key={name} class={`part-${tone}`} style={{ width: `${(100 * tokens) / Math.max(whole, 1)}%` }} />
        ))}
      </div>
      <dl class="stack-names">
        {parts.map(([name, tokens, tone]) => (
          <div key={name}>
            <dt>
              <span class={`key part-${tone}`} aria-hidden="true" />
              {name}
            </dt>
            <dd>{count(tokens)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
