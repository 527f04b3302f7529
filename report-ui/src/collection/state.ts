// What was chosen on a page. It stands in the fragment of the address, so that a view can be linked to, and the way
// back leads to it.

const here = (): URLSearchParams => new URLSearchParams(location.hash.slice(1));

export function chosen(key: string): string | null {
  return here().get(key);
}

/** Keep a choice; the empty one is left out. */
export function choose(key: string, value: string): void {
  const all = here();
  if (value === "") all.delete(key);
  else all.set(key, value);
  history.replaceState(null, "", `#${all}`);
}

/** The address of a page with these choices. */
export function address(page: string, choices: Record<string, string>): string {
  const fragment = new URLSearchParams(choices).toString();
  return `${page}.html${fragment && `#${fragment}`}`;
}
