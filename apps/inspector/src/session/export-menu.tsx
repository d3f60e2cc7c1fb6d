import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { apiPath, getJson, request } from "../api.ts";
import type { ListJson, RemarkJson, SessionJson } from "../json.ts";
import type { SessionPlace } from "../router.ts";
import { announce } from "../ui/announce.ts";
import { Panel, useToggle } from "../ui/menu.tsx";
import { shown } from "../ui/text.ts";
import { errorOf, useLoad } from "../use-load.ts";
import { placeQuery, sessionPath } from "./session-outline.ts";

interface ExportProps {
  readonly session: SessionJson;
  readonly place: SessionPlace;
}

type Target = "html" | "markdown" | "jsonl";
const targets: readonly (readonly [Target, string])[] = [
  ["html", "Web page, one file"],
  ["markdown", "Markdown"],
  ["jsonl", "The exact records"],
];
const levels = [
  ["compact", "Results to 20 lines"],
  ["full", "Everything"],
  ["words", "Only prompts and replies"],
] as const;

export function ExportMenu(props: ExportProps): JSX.Element {
  const [isOpen, setOpen] = useToggle();
  return (
    <Panel label="Export" name="Export this session" isOpen={isOpen} onToggle={setOpen}>
      <ExportForm {...props} />
    </Panel>
  );
}

function ExportForm({ session, place }: ExportProps): JSX.Element {
  const [to, setTo] = useState<Target>("html");
  const [level, setLevel] = useState("compact");
  const [hasImages, setImages] = useState(false);
  const [isRedacted, setRedacted] = useState(true);
  const [pattern, setPatterns] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState("");
  const isPage = to !== "jsonl";
  const redacted = isRedacted ? { redact: "on", pattern } : { redact: "off" };
  const page = isPage ? { level, ...redacted, ...(hasImages ? { images: "true" } : {}) } : {};
  const query = { ...placeQuery(place), to, ...page };
  const save = (): void => {
    setProblem("");
    void saveFile(place, query, nameOf(session, to)).catch((error: unknown) => setProblem(errorOf(error).message));
  };
  return (
    <form
      class="export"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Options legend="As" name="to" value={to} options={targets} onPick={(value) => setTo(value as Target)} />
      {isPage ? (
        <>
          <Options legend="With" name="level" value={level} options={levels} onPick={setLevel} />
          <label class="check">
            <input type="checkbox" checked={hasImages} onChange={(event) => setImages(event.currentTarget.checked)} />
            Images
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={isRedacted}
              onChange={(event) => setRedacted(event.currentTarget.checked)}
            />
            Replace secrets of known shapes
          </label>
          {isRedacted ? (
            <>
              <Patterns onChange={setPatterns} />
              <Remarks place={place} query={query} />
            </>
          ) : (
            <p class="warning-text">The file may hold keys and passwords.</p>
          )}
        </>
      ) : (
        <p class="soft">The lines as they are stored, with everything in them.</p>
      )}
      {problem === "" ? null : <p class="error-text">{problem}</p>}
      <button type="submit" class="button primary">
        Save the file
      </button>
    </form>
  );
}

interface OptionsProps {
  readonly legend: string;
  readonly name: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onPick: (value: string) => void;
}

function Options({ legend, name, value, options, onPick }: OptionsProps): JSX.Element {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {options.map(([each, text]) => (
        <label key={each} class="check">
          <input type="radio" name={name} checked={each === value} onChange={() => onPick(each)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

interface PatternsProps {
  readonly onChange: (patterns: readonly string[]) => void;
}

/** Takes expressions of the reader's own when the field is left, because the server looks at the session for each. */
function Patterns({ onChange }: PatternsProps): JSX.Element {
  const take = (text: string): void => onChange(text.split("\n").filter((line) => line.trim() !== ""));
  return (
    <label class="patterns">
      Replace also, one regular expression a line
      <textarea
        class="field"
        rows={2}
        spellcheck={false}
        placeholder="ACME-[0-9]{6}"
        onChange={(event) => take(event.currentTarget.value)}
      />
    </label>
  );
}

type ExportQuery = Readonly<Record<string, string | readonly string[] | null>>;

/** Shows what the search for secrets replaces, before anybody saves the file. */
function Remarks({ place, query }: { readonly place: SessionPlace; readonly query: ExportQuery }): JSX.Element {
  const { loaded } = useLoad<ListJson<RemarkJson>>(JSON.stringify(query), (signal) =>
    getJson(sessionPath(place, "/export"), { ...query, remarks: "true" }, signal),
  );
  if (loaded.state === "loading") return <p class="soft">Looking for secrets …</p>;
  if (loaded.state === "failed") return <p class="error-text">{loaded.error.message}</p>;
  return (
    <ul class="losses">
      {loaded.value.items.map(({ reason }, index) => (
        <li key={index}>{shown(reason)}</li>
      ))}
    </ul>
  );
}

/** Saves a file through an address of this page, because a link could not carry the token. */
async function saveFile(place: SessionPlace, query: ExportQuery, name: string): Promise<void> {
  const response = await request(apiPath(sessionPath(place, "/export"), query));
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  announce(`Saved as ${name}`);
}

const endings: Readonly<Record<Target, string>> = { html: "html", markdown: "md", jsonl: "jsonl" };

function nameOf({ name, sessionId }: SessionJson, to: Target): string {
  const words = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 40)
    .replace(/^-|-$/g, "");
  const day = new Date().toISOString().slice(0, 10);
  return `${words === "" ? "session" : words}-${sessionId.slice(0, 8)}-${day}.${endings[to]}`;
}
