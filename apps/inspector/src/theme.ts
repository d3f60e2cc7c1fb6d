import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
const name = "throughline-theme";
const themes: readonly Theme[] = ["system", "light", "dark"];

export function applyTheme(): void {
  const stored = localStorage.getItem(name);
  if (stored === "light" || stored === "dark") document.documentElement.dataset["theme"] = stored;
}

/** Returns the theme, and a function that switches to the next one. */
export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() => (document.documentElement.dataset["theme"] as Theme) ?? "system");
  useEffect(() => {
    if (theme === "system") {
      delete document.documentElement.dataset["theme"];
      localStorage.removeItem(name);
    } else {
      document.documentElement.dataset["theme"] = theme;
      localStorage.setItem(name, theme);
    }
  }, [theme]);
  return [theme, () => setTheme((now) => themes[(themes.indexOf(now) + 1) % themes.length] ?? "system")];
}
