import type { JSX } from "preact";
import { count, durationOf, momentOf } from "../../format.ts";
import type { SessionJson, SessionUsageJson } from "../../json.ts";
import { sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { costText } from "../../usage/cost-text.ts";
import { UsageTotals } from "../../usage/usage-totals.tsx";
import { FillCurve } from "./fill-curve.tsx";
import { useMore } from "../../ui/use-more.tsx";
import type { SessionUsage } from "../session-usage.ts";

interface UsageProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
  readonly usage: SessionUsage;
}

/** Shows tokens and cost of a session, prompt by prompt. */
export function UsageView({ session, place, usage: { loaded, reload } }: UsageProps): JSX.Element {
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { turns, total, hasUsage, pricesAsOf } = loaded.value;
  const fills = turns.flatMap(({ fillTokens }) => (fillTokens === null ? [] : [fillTokens]));
  if (!hasUsage)
    return (
      <EmptyState title="No usage is recorded">
        <p>The program that wrote this session states no tokens.</p>
      </EmptyState>
    );
  return (
    <div class="view-page">
      <UsageTotals total={total} pricesAsOf={pricesAsOf} />
      <FillCurve fills={fills} windowTokens={session.windowTokens} />
      <Turns turns={turns} place={place} />
    </div>
  );
}

interface TurnsProps {
  readonly turns: SessionUsageJson["turns"];
  readonly place: SessionPlace;
}

function Turns({ turns, place }: TurnsProps): JSX.Element {
  const { shown: most, button } = useMore(turns.length, "prompts");
  return (
    <>
      <div class="wide-table" tabIndex={0} role="region" aria-label="Usage by prompt">
        <table>
          <thead>
            <tr>
              <th>Prompt</th>
              <th>Model</th>
              <th class="right">Calls</th>
              <th class="right">Time</th>
              <th class="right">Input</th>
              <th class="right">Cache read</th>
              <th class="right">Output</th>
              <th class="right">Context</th>
              <th class="right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {turns.slice(0, most).map((turn, index) => (
              <tr key={turn.seq ?? -index}>
                <td>
                  {turn.seq === null ? (
                    "before the first prompt"
                  ) : (
                    <a href={sessionHref(place, { at: turn.seq })} title={momentOf(turn.tsMs)}>
                      #{turn.seq}
                    </a>
                  )}
                  {turn.isShared ? <span class="badge plain">counted in the origin</span> : null}
                </td>
                <td>{turn.model === null ? "–" : shown(turn.model)}</td>
                <td class="right">{count(turn.calls)}</td>
                <td class="right">{turn.seconds > 0 ? durationOf(turn.seconds * 1000) : "–"}</td>
                <td class="right">{count(turn.input)}</td>
                <td class="right">{count(turn.cacheRead)}</td>
                <td class="right">{count(turn.output)}</td>
                <td class="right">{turn.fillTokens === null ? "–" : count(turn.fillTokens)}</td>
                <td class="right">{costText(turn.costUsd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {button}
    </>
  );
}
