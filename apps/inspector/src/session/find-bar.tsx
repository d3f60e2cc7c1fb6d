import type { JSX } from "preact";
import { Icon, type IconName } from "../ui/icons.tsx";
import type { Find } from "./use-find.ts";

export function FindBar({ find }: { readonly find: Find }): JSX.Element {
  const { words, state, total, at, isExact, search, step } = find;
  const text =
    state === "done"
      ? total === 0
        ? "no hit"
        : `${at === 0 ? "–" : at} of ${total}${isExact ? "" : "+"}`
      : state === "failed"
        ? "not searched"
        : "";
  return (
    <form
      class="find-bar"
      role="search"
      aria-label="Find in this session"
      onSubmit={(event) => {
        event.preventDefault();
        step(1);
      }}
    >
      <Icon name="search" />
      <input
        id="find-here"
        type="search"
        aria-label="Find in this session"
        placeholder="Find in this session"
        autocomplete="off"
        spellcheck={false}
        value={words}
        onInput={(event) => search(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
          if (event.key === "Enter" && event.shiftKey) {
            event.preventDefault();
            step(-1);
          }
        }}
      />
      <span class="find-count" role="status">
        {text}
      </span>
      {words === "" ? null : (
        <>
          <StepButton
            name="Previous hit"
            icon="up"
            title="Previous hit (N)"
            isOff={total === 0}
            onClick={() => step(-1)}
          />
          <StepButton name="Next hit" icon="chevron" title="Next hit (n)" isOff={total === 0} onClick={() => step(1)} />
        </>
      )}
    </form>
  );
}

interface StepProps {
  readonly name: string;
  readonly icon: IconName;
  readonly title: string;
  readonly isOff: boolean;
  readonly onClick: () => void;
}

function StepButton({ name, icon, title, isOff, onClick }: StepProps): JSX.Element {
  return (
    <button type="button" class="icon-button" aria-label={name} title={title} disabled={isOff} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}
