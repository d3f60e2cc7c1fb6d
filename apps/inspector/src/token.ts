const name = "throughline-token";

/**
 * Takes the token from the fragment of the address, where a server never sees it, and removes it from there. Other pages
 * of this tab keep it until the tab is closed.
 */
export function takeToken(): void {
  const { hash, pathname, search } = location;
  if (!hash.startsWith("#token=")) return;
  sessionStorage.setItem(name, decodeURIComponent(hash.slice("#token=".length)));
  history.replaceState(history.state, "", pathname + search);
}

export function tokenOf(): string | null {
  return sessionStorage.getItem(name);
}

export function setToken(text: string | null): void {
  if (text === null) sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, text.trim());
}
