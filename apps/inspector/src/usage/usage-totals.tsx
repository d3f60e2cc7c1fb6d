import type { JSX } from "preact";
import { count, counted } from "../format.ts";
import type { UsageSums } from "../json.ts";
import { costText } from "./cost-text.ts";

interface TotalsProps {
  readonly total: UsageSums;
  readonly pricesAsOf: string;
}

/** Shows the sums that `throughline usage` prints, and what they leave out. */
export function UsageTotals({ total, pricesAsOf }: TotalsProps): JSX.Element {
  const cells: readonly (readonly [string, string])[] = [
    ["Cost", costText(total.costUsd)],
    ["Calls", count(total.calls)],
    ["Input", count(total.input)],
    ["Cache read", count(total.cacheRead)],
    ["Cache write", count(total.cacheWrite)],
    ["Output", count(total.output)],
  ];
  return (
    <>
      <dl class="totals">
        {cells.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="soft note">
        {total.statedUsd > 0 ? `Programs stated ${costText(total.statedUsd)} themselves. ` : ""}
        Other prices are those of {pricesAsOf}, in US dollars.
        {total.unpricedCalls > 0 ? ` ${counted(total.unpricedCalls, "call")} without a price.` : ""}
        {total.doubtfulCalls > 0 ? ` ${counted(total.doubtfulCalls, "call")} with impossible counts left out.` : ""}
      </p>
    </>
  );
}
