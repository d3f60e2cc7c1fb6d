import type { JSX } from "preact";
import { programName, programNames } from "../format.ts";
import { hrefWith, navigate } from "../router.ts";
import type { SessionFilters } from "./session-pages.ts";

const states = [
  ["", "Active"],
  ["archived", "Archived"],
  ["sub-agents", "With sub-agents"],
] as const;

const times = [
  ["", "Any time"],
  ["1d", "Last day"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
] as const;

export function Filters({ filters }: { readonly filters: SessionFilters }): JSX.Element {
  const { program, cwd, state, since } = filters;
  const programs: readonly Option[] = [
    ["", "All programs"],
    ["own", "Throughline"],
    ...programNames.map((name): Option => [name, programName(name)]),
  ];
  return (
    <div class="filters" role="group" aria-label="Filters">
      <Choice name="program" label="Program" value={program} options={programs} />
      <Choice name="state" label="State" value={state} options={states} />
      <Choice name="since" label="Time" value={since} options={times} />
      <input
        class="field"
        type="search"
        aria-label="Folder"
        placeholder="Folder"
        value={cwd}
        onChange={(event) => change("cwd", event.currentTarget.value)}
      />
    </div>
  );
}

type Option = readonly [value: string, label: string];

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
}

function Choice({ name, label, value, options }: ChoiceProps): JSX.Element {
  return (
    <select
      class={`field${value === "" ? "" : " set"}`}
      aria-label={label}
      value={value}
      onChange={(event) => change(name, event.currentTarget.value)}
    >
      {options.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

function change(name: string, value: string): void {
  navigate(hrefWith({ [name]: value === "" ? null : value }));
}
