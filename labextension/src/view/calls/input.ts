/** Keys and presses of the pointer, for everything in the tab of the calls that handles them. */

/** Calls `act` for keys pressed without Ctrl, Alt or Meta; others do not see those it handles. */
export function onKeys(node: HTMLElement, act: (event: KeyboardEvent) => boolean): void {
  node.addEventListener('keydown', event => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && act(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

/** What a press of the main button does. */
export interface Press {
  move(event: PointerEvent): void;
  up?(event: PointerEvent): void; // not if the browser takes the pointer away
}

/** Follows each press on `node` until its end; `hover` gets the moves between presses. */
export function onPress(
  node: HTMLElement,
  down: (event: PointerEvent) => Press,
  hover?: (event: PointerEvent) => void
): void {
  let press: Press | null = null;
  node.addEventListener('pointerdown', event => {
    if (event.button === 0) {
      press = down(event);
      node.setPointerCapture?.(event.pointerId);
    }
  });
  node.addEventListener('pointermove', event => (press ? press.move(event) : hover?.(event)));
  node.addEventListener('pointerup', event => {
    const ended = press;
    press = null;
    ended?.up?.(event);
  });
  node.addEventListener('pointercancel', () => (press = null));
}
