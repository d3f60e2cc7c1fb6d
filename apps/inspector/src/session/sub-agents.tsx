import type { TranscriptRow } from "@throughline/transcript-view/internal";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { count, counted } from "../format.ts";
import type { SessionJson } from "../json.ts";
import { placeOf, sessionHref } from "../router.ts";
import { Icon } from "../ui/icons.tsx";
import { FailedState, LoadingRows } from "../ui/states.tsx";
import { shown } from "../ui/text.ts";
import { Folds } from "./folds.ts";
import { PlainRecords } from "./plain-records.tsx";
import { RecordChunks, type RecordView } from "./record-chunks.ts";

interface SubAgentsProps {
  readonly row: TranscriptRow;
  readonly view: RecordView;
  readonly folds: Folds;
}

/** Lists the sessions that the call of a row started. */
export function SubAgents({ row, view, folds }: SubAgentsProps): JSX.Element {
  const agents = row.callId === null ? [] : (view.agents.get(row.callId) ?? []);
  return (
    <>
      {agents.map((agent) => (
        <SubAgent key={agent.sessionId} agent={agent} folds={folds} />
      ))}
    </>
  );
}

interface SubAgentProps {
  readonly agent: SessionJson;
  readonly folds: Folds;
}

/** Shows a session under the call that started it, as a line that opens. */
function SubAgent({ agent, folds }: SubAgentProps): JSX.Element {
  const name = `agent ${agent.sessionId}`;
  const isOpen = folds.isWhole(name);
  return (
    <div class={`row folds agent${isOpen ? " open" : ""}`}>
      <button type="button" class="row-line" aria-expanded={isOpen} onClick={() => folds.showWhole(name, !isOpen)}>
        <Icon name="right" />
        <b>Sub-agent</b>
        <span class="row-detail">{shown(agent.firstWords ?? agent.name)}</span>
        <span class="badge plain">{counted(agent.messageCount, "message")}</span>
      </button>
      {isOpen ? (
        <div class="row-body">
          <AgentRecords agent={agent} />
        </div>
      ) : null}
    </div>
  );
}

/** A page holds few elements, because it stands in the list of another session. */
const pageRecords = 20;

/** Its own sub-agents are behind the link. */
function AgentRecords({ agent }: { readonly agent: SessionJson }): JSX.Element {
  const [, render] = useState(0);
  const [from, setFrom] = useState(1);
  const change = (): void => render((turn) => turn + 1);
  const place = placeOf(agent);
  const chunks = useMemo(() => new RecordChunks(place, agent.cwd, change), []);
  const folds = useMemo(() => new Folds(change), []);
  const { lastSeq } = agent.head;
  const to = Math.min(lastSeq, from + pageRecords - 1);
  useEffect(() => chunks.want(from, to));
  useEffect(() => () => chunks.stop(), []);
  const isLoading = lastSeq > 0 && (chunks.view(from) === undefined || chunks.view(to) === undefined);
  return (
    <>
      {chunks.failed !== null ? (
        <FailedState error={chunks.failed} reload={() => chunks.retry()} />
      ) : isLoading ? (
        <LoadingRows rows={3} />
      ) : (
        <PlainRecords chunks={chunks} folds={folds} place={place} from={from} to={to} />
      )}
      <p class="agent-pages">
        {from > 1 ? <Step name="Earlier" to={() => setFrom(from - pageRecords)} /> : null}
        <span>
          Records {count(from)} to {count(to)} of {count(lastSeq)}
        </span>
        {to < lastSeq ? <Step name="Later" to={() => setFrom(from + pageRecords)} /> : null}
        <a href={sessionHref(place)}>Open this session</a>
      </p>
    </>
  );
}

function Step({ name, to }: { readonly name: string; readonly to: () => void }): JSX.Element {
  return (
    <button type="button" class="text-button" onClick={to}>
      {name}
    </button>
  );
}
