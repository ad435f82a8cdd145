/** Colours of values: a sequential map for distances, a diverging one for differences; both colour-blind safe. */

const SHADES = 256;

/** A colour map as `SHADES` CSS colours, interpolated between samples. */
function shades(samples) {
  return Array.from({ length: SHADES }, (_, i) => {
    const place = (i / (SHADES - 1)) * (samples.length - 1);
    const low = Math.min(Math.floor(place), samples.length - 2);
    const mix = samples[low].map((part, channel) => part + (place - low) * (samples[low + 1][channel] - part));
    return `rgb(${mix.map(Math.round).join(",")})`;
  });
}

/** A linear scale: `color(value)` is null for values that are not finite; values beyond the ends have the end's colour. */
export class Scale {
  constructor(samples, low, high) {
    this.shades = shades(samples);
    this.low = low;
    this.high = high;
  }

  color(value) {
    if (!Number.isFinite(value)) return null;
    const part = (value - this.low) / (this.high - this.low || 1);
    return this.shades[Math.round(Math.min(1, Math.max(0, part)) * (SHADES - 1))];
  }

  gradient() {
    const stops = [0, 32, 64, 96, 128, 160, 192, 224, 255].map((shade) => this.shades[shade]);
    return `linear-gradient(to right, ${stops.join(",")})`;
  }
}

/** From 0 to the largest finite value, at least 1. */
export function distanceScale(colors, lists) {
  return new Scale(colors.sequential, 0, Math.max(1, largest(lists)));
}

/** Symmetric around 0, at least 1. */
export function differenceScale(colors, lists) {
  const most = Math.max(1, largest(lists));
  return new Scale(colors.diverging, -most, most);
}

function largest(lists) {
  let most = 0;
  for (const list of lists)
    for (const value of list) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most;
}
