/** Colors of the timeline: custom properties of style/timeline.css, read when it is drawn. */

import { COLOURS, durationColour, RAMP, siteColour } from '../../../colours.js';

export interface Theme {
  readonly sites: readonly string[];
  readonly onSites: readonly string[]; // text that is readable on each
  readonly durations: readonly string[]; // from short to long
  readonly onDurations: readonly string[];
  readonly mixed: string; // calls of several sites
  readonly dimmed: string; // calls that do not pass the filter
  readonly failed: string;
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  readonly stripe: string;
  readonly back: string;
  readonly mark: string;
  readonly font: string;
}

/** Reads the current theme around `node`; `pen` converts colors to numbers. */
export function themeOf(node: Element, pen: CanvasRenderingContext2D): Theme {
  const style = getComputedStyle(node);
  const read = (name: string) => style.getPropertyValue(name).trim() || '#808080';
  const sites = Array.from({ length: COLOURS }, (_, colour) => read(siteColour(colour)));
  const durations = Array.from({ length: RAMP }, (_, place) => read(durationColour(place)));
  const readable = (colour: string) => inkOn(colour, pen);
  return {
    sites,
    onSites: sites.map(readable),
    durations,
    onDurations: durations.map(readable),
    mixed: read('--jaxcb-site-mixed'),
    dimmed: read('--jaxcb-timeline-dimmed'),
    failed: read('--jaxcb-timeline-failed'),
    text: read('--jaxcb-timeline-text'),
    muted: read('--jaxcb-timeline-muted'),
    line: read('--jaxcb-timeline-line'),
    stripe: read('--jaxcb-timeline-stripe'),
    back: read('--jaxcb-timeline-back'),
    mark: read('--jaxcb-timeline-mark'),
    font: style.fontFamily || 'sans-serif'
  };
}

/** The color of text that is readable on a color. */
export function inkOn(colour: string, pen: CanvasRenderingContext2D): string {
  return isDark(colour, pen) ? '#ffffff' : '#000000';
}

/** Whether white is easier to read on `colour` than black. */
function isDark(colour: string, pen: CanvasRenderingContext2D): boolean {
  pen.fillStyle = colour;
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(String(pen.fillStyle));
  if (!hex) {
    return false;
  }
  const [red, green, blue] = hex.slice(1).map(each => (parseInt(each, 16) / 255) ** 2.2);
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! < 0.179;
}
