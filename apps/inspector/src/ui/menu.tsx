import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons.tsx";

interface MenuProps {
  readonly label: ComponentChildren;
  readonly name: string;
  readonly className?: string;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly children: ComponentChildren;
}

/** A button with a panel. The panel closes with Escape, a click outside, or when the focus leaves it. */
export function Panel({ label, name, className = "button", isOpen, onToggle, children }: MenuProps): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    root.current?.querySelector<HTMLElement>(".panel :is(a, button, input, select)")?.focus();
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      onToggle(false);
      button.current?.focus();
    };
    const point = (event: Event): void => {
      if (event.target instanceof Node && root.current?.contains(event.target) === false) onToggle(false);
    };
    document.addEventListener("keydown", press, true);
    document.addEventListener("pointerdown", point);
    return () => {
      document.removeEventListener("keydown", press, true);
      document.removeEventListener("pointerdown", point);
    };
  }, [isOpen]);
  return (
    <div class="menu" ref={root}>
      <button
        type="button"
        class={className}
        ref={button}
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        aria-label={typeof label === "string" ? undefined : name}
        title={typeof label === "string" ? undefined : name}
        onClick={() => onToggle(!isOpen)}
      >
        {label}
        {className === "button" ? <Icon name="chevron" /> : null}
      </button>
      {isOpen ? (
        <div class="panel" role="dialog" aria-label={name}>
          {children}
        </div>
      ) : null}
    </div>
  );
}

export function useToggle(): readonly [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(false);
  return [value, setValue];
}
