import { useEffect } from "preact/hooks";

export type KeyTable = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const name = "throughline-keys";

/** Single keys can be switched off, because people who speak their input press them by accident. */
export function areKeysOn(): boolean {
  return localStorage.getItem(name) !== "off";
}

export function setKeysOn(on: boolean): void {
  if (on) localStorage.removeItem(name);
  else localStorage.setItem(name, "off");
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}

/** Binds single keys while a component is shown. Fields keep their keys, and so do the browser's own combinations. */
export function useKeys(table: KeyTable): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.metaKey || event.altKey || event.isComposing) return;
      const pressed = event.ctrlKey ? `Ctrl+${event.key}` : event.key;
      if (isField(event.target) && pressed !== "Escape" && !event.ctrlKey) return;
      if (pressed.length === 1 && !areKeysOn()) return;
      const act = table[pressed];
      if (act === undefined) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });
}
