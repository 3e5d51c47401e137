/* The predictive distribution of a model for one row, as `bowtienet._old.prediction` has it.

   `report/exported_model.py` says what the numbers are, and `report/whatif.py` what is on the
   panel. Nothing is approximated here that is not in Python. */
(function () {
  "use strict";

  /* ---- Arrays out of one buffer ---- */

  function readNumbers(text) {
    const letters = atob(text), bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) { bytes[i] = letters.charCodeAt(i); }
    return new Float64Array(bytes.buffer);
  }

  /* Places of arrays become the arrays: `values`, with `shape` beside them. */
  function fillIn(node, numbers) {
    if (node === null || typeof node !== "object") { return node; }
    if (Array.isArray(node)) { return node.map(function (one) { return fillIn(one, numbers); }); }
    if ("at" in node) {
      const size = node.shape.reduce(function (a, b) { return a * b; }, 1);
      return { values: numbers.subarray(node.at, node.at + size), shape: node.shape };
    }
    const found = {};
    Object.keys(node).forEach(function (key) { found[key] = fillIn(node[key], numbers); });
    return found;
  }

  function sum(count, term) {
    let total = 0;
    for (let i = 0; i < count; i++) { total += term(i); }
    return total;
  }

  function vector(count, entry) {
    const found = new Float64Array(count);
    for (let i = 0; i < count; i++) { found[i] = entry(i); }
    return found;
  }

  /* ---- The normal distribution ---- */

  const ROOT_TWO_PI = Math.sqrt(2 * Math.PI);

  function density(x) { return Math.exp(-0.5 * x * x) / ROOT_TWO_PI; }

  /* Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...); far out its small tail is
     phi(x) / (x + 1/(x + 2/(x + ...))). */
  function cumulative(x) {
    const size = Math.abs(x);
    if (size > 38) { return x > 0 ? 1 : 0; }
    if (size > 4) {
      let fraction = size;
      for (let k = 60; k > 0; k--) { fraction = size + k / fraction; }
      return x > 0 ? 1 - density(x) / fraction : density(x) / fraction;
    }
    let term = x, total = x;
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(total); k += 2) {
      term *= x * x / k;
      total += term;
    }
    return 0.5 + density(x) * total;
  }

  /* ---- Networks: `prediction/push_forward.py` and `distributions/gated.py` ---- */

  /* E[g], Var[g] and the variance of the gate, for z ~ N(mean, variance). */
  function gatedMoments(mean, variance, temperature, constants) {
    const slopes = constants.probit_slopes, weights = constants.probit_weights;
    const widest = Math.pow(temperature / Math.min.apply(null, slopes), 2);
    // Open or shut beyond doubt.
    if (mean * mean >= (variance + widest) * 6.5 * 6.5) {
      return mean > 0 ? [mean, variance, 0] : [0, 0, 0];
    }
    let opened = 0, edge = 0, bend = 0, gates = 0;
    for (let k = 0; k < slopes.length; k++) {
      const width = Math.pow(temperature / slopes[k], 2);
      const inverse = 1 / Math.sqrt(variance + width), ratio = width * inverse * inverse;
      const height = weights[k] * density(mean * inverse) * inverse;
      opened += weights[k] * cumulative(mean * inverse);
      edge += height;
      bend += (1 + ratio) * height;
      gates += ratio * (variance + mean * mean * ratio) * height;
    }
    const first = mean * opened + variance * edge;
    const second = (mean * mean + variance) * opened + variance * mean * bend;
    const total = Math.max(second - first * first, 0);
    gates = Math.min(temperature * gates, total);
    return [first, total - gates, gates];
  }

  /* u'C u of unit d, with C packed as in `exported_model._packed`. */
  function quadratic(packed, d, u) {
    const size = u.length, values = packed.values;
    let place = d * packed.shape[1], total = 0;
    for (let i = 0; i < size; i++) {
      let row = 0;
      for (let j = i; j < size; j++, place++) { row += values[place] * u[j]; }
      total += u[i] * row;
    }
    return total;
  }

  /* Preactivations: their means, and variances that are epistemic or by chance. */
  function firstLayer(layer, u, base) {
    const width = layer.mean.shape[0], size = u.length;
    const row = Math.min(base, layer.base_mean.shape[0] - 1);
    const mean = layer.mean.values, slope = layer.base_slope.values;
    return {
      mean: vector(width, function (d) {
        return layer.base_mean.values[row * width + d]
          + sum(size, function (i) { return mean[d * size + i] * u[i]; });
      }),
      epistemic: vector(width, function (d) {
        const begin = (row * width + d) * size;
        return Math.max(0, layer.base_variance.values[row * width + d]
          + sum(size, function (i) { return slope[begin + i] * u[i]; })
          + quadratic(layer.covariance, d, u));
      }),
      chance: new Float64Array(width)
    };
  }

  function nextLayer(layer, below) {
    const width = layer.mean.shape[0], size = layer.mean.shape[1];
    const mean = layer.mean.values, squares = layer.squares.values;
    const ones = vector(size, function (k) { return k === 0 ? 1 : below.mean[k - 1]; });
    function passed(d, variances) {
      return sum(size - 1, function (k) { return variances[k] * squares[d * (size - 1) + k]; });
    }
    return {
      mean: vector(width, function (d) {
        return sum(size, function (k) { return mean[d * size + k] * ones[k]; });
      }),
      epistemic: vector(width, function (d) {
        return Math.max(0, quadratic(layer.covariance, d, ones)) + passed(d, below.epistemic);
      }),
      chance: vector(width, function (d) { return passed(d, below.chance); })
    };
  }

  function activations(layer, z, temperature, constants) {
    const found = { mean: [], epistemic: [], chance: [] };
    for (let d = 0; d < z.mean.length; d++) {
      const total = z.epistemic[d] + z.chance[d];
      const moments = gatedMoments(z.mean[d], total, temperature, constants);
      const share = total > 0 ? z.epistemic[d] / total : 0;
      found.mean.push(moments[0]);
      found.epistemic.push(share * moments[1]);
      found.chance.push((1 - share) * moments[1] + moments[2] + layer.noise.values[d]);
    }
    return found;
  }

  function memberMoments(member, u, base, constants) {
    let layer = member.first, z = firstLayer(layer, u, base);
    member.layers.forEach(function (next) {
      z = nextLayer(next, activations(layer, z, member.temperature, constants));
      layer = next;
    });
    const ratio = member.ratio.values, noise = member.noise.values;
    return {
      mean: z.mean,
      epistemic: z.epistemic.map(function (v, d) { return ratio[d] * v; }),
      noise: z.chance.map(function (v, d) { return ratio[d] * (v + noise[d]); })
    };
  }

  /* ---- The ensemble: `ensemble/ensemble.py`, `prediction/outside.py`, `prediction/levels.py` ---- */

  function viewInputs(view, x) {
    const own = view.pieces;
    if (own === null) { return x; }
    return vector(own.column.length, function (i) {
      const low = own.low.values[i];
      let value = (x[own.column[i]] - low) / (own.high.values[i] - low);
      if (!own.first[i]) { value = Math.max(value, 0); }
      if (!own.last[i]) { value = Math.min(value, 1); }
      return (value - own.center.values[i]) / own.scale.values[i];
    });
  }

  /* Members of a group predict as one Gaussian; a shift that all classes share means nothing. */
  function joined(members, shares, ofClasses) {
    const n = members[0].mean.length;
    let means = members.map(function (one) { return one.mean; });
    if (ofClasses) {
      const shifts = means.map(function (own) {
        return sum(n, function (d) { return own[d]; }) / n;
      });
      const common = sum(shifts.length, function (k) { return shifts[k]; }) / shifts.length;
      means = means.map(function (own, k) {
        return own.map(function (value) { return value - shifts[k] + common; });
      });
    }
    function mixed(term) {
      return vector(n, function (d) {
        return sum(members.length, function (k) { return shares[k] * term(k, d); });
      });
    }
    const mean = mixed(function (k, d) { return means[k][d]; });
    return {
      mean: mean,
      variance: mixed(function (k, d) {
        return members[k].epistemic[d] + Math.pow(means[k][d] - mean[d], 2) + members[k].noise[d];
      })
    };
  }

  function outsideVariance(own, x, base, group, d) {
    const n = own.base.shape[2], groups = own.base.shape[1];
    let variance = own.base.values[(base * groups + group) * n + d];
    for (let e = 0; e < x.length; e++) {
      const away = Math.max(own.low.values[e] - x[e], x[e] - own.high.values[e], 0);
      variance += away * away * own.variance.values[(group * x.length + e) * n + d];
    }
    return own.bounded[group] ? variance / (1 + variance) : variance;
  }

  function groupMoments(model, x, base) {
    const inputs = model.views.map(function (view) { return viewInputs(view, x); });
    const groups = model.groups.weights.values;
    const found = [];
    for (let g = 0; g < groups.length; g++) {
      const own = model.members.filter(function (member) { return member.group === g; });
      if (own.length === 0) { continue; }
      const moments = joined(
        own.map(function (one) {
          return memberMoments(one, inputs[one.view], base, model.constants);
        }),
        own.map(function (one) { return one.share; }),
        model.outcome.kind === "classes"
      );
      const slope = model.groups.slope === null ? 1 : model.groups.slope.values[g];
      found.push({
        group: g,
        weight: groups[g],
        mean: moments.mean.map(function (value) { return slope * value; }),
        variance: moments.variance.map(function (value, d) {
          const beyond = model.outside === null ? 0 : outsideVariance(model.outside, x, base, g, d);
          return slope * slope * (value + beyond);
        })
      });
    }
    return found;
  }

  function logSigmoid(x) { return x < 0 ? x - Math.log1p(Math.exp(x)) : -Math.log1p(Math.exp(-x)); }

  /* Scales of the levels of noise, and their probabilities at x. */
  function noiseLevels(model, x, base, d) {
    const own = model.levels;
    if (own === null) { return [{ scale: 1, share: 1 }]; }
    const levels = own.scale.shape[0], n = own.scale.shape[1], size = own.columns.length;
    const furthest = model.constants.furthest, found = [];
    let rest = 0;
    for (let k = 0; k < levels; k++) {
      const scale = own.scale.values[k * n + d];
      if (k === levels - 1) { found.push({ scale: scale, share: Math.exp(rest) }); break; }
      let logit = own.base.values[(base * (levels - 1) + k) * n + d];
      for (let q = 0; q < size; q++) {
        const held = Math.min(Math.max(x[own.columns[q]], -furthest), furthest);
        logit += held * own.gates.values[(k * size + q) * n + d];
      }
      found.push({ scale: scale, share: Math.exp(rest + logSigmoid(logit)) });
      rest += logSigmoid(-logit);
    }
    return found;
  }

  /* ---- Warped targets: `distributions/yeo_johnson.py` ---- */

  const NO_WARP = { exponent: 1, low: 0, high: 0, center: 0, scale: 1 };

  function power(value, exponent) { return Math.max(value < 0 ? 2 - exponent : exponent, 1e-20); }

  function bend(value, exponent) {
    const p = power(value, exponent), size = Math.abs(value);
    const grown = Math.expm1(p * Math.log1p(size));
    return [Math.sign(value) * grown / p, (1 + grown) / (1 + size)];
  }

  function toWarped(warp, value) {
    const inside = Math.min(Math.max(value, warp.low), warp.high);
    const bent = bend(inside, warp.exponent);
    return (bent[0] + bent[1] * (value - inside) - warp.center) / warp.scale;
  }

  function fromWarped(warp, value) {
    const target = value * warp.scale + warp.center;
    const low = bend(warp.low, warp.exponent)[0], high = bend(warp.high, warp.exponent)[0];
    const bent = Math.min(Math.max(target, low), high);
    const p = power(bent, warp.exponent), grown = p * Math.abs(bent);
    const size = Math.expm1(Math.log1p(grown) / p);
    return Math.sign(bent) * size + (target - bent) * (1 + size) / (1 + grown);
  }

  function warpOf(model, group, d) {
    const own = model.groups.warp;
    if (own === null) { return NO_WARP; }
    const place = group * own.scale.shape[1] + d, found = {};
    Object.keys(NO_WARP).forEach(function (name) { found[name] = own[name].values[place]; });
    return found;
  }

  /* Mean and variance of u for z ~ N(mean, deviation^2), by quadrature. */
  function unwarped(part, constants) {
    const median = fromWarped(part.warp, part.mean);
    let first = 0, second = 0;
    constants.nodes.forEach(function (node, i) {
      const away = fromWarped(part.warp, part.mean + node * part.deviation) - median;
      first += constants.node_weights[i] * away;
      second += constants.node_weights[i] * away * away;
    });
    return { mean: median + first, variance: Math.max(second - first * first, 0) };
  }

  /* ---- Distributions: `prediction/mixture.py` and `prediction/class_probabilities.py` ---- */

  function mixtureOf(model, x, base, groups, d) {
    const parts = [];
    noiseLevels(model, x, base, d).forEach(function (level) {
      groups.forEach(function (own) {
        parts.push({
          weight: own.weight * level.share,
          mean: own.mean[d],
          deviation: Math.sqrt(level.scale * own.variance[d]),
          warp: warpOf(model, own.group, d)
        });
      });
    });
    return parts;
  }

  function quantile(parts, level) {
    const ends = [];
    parts.forEach(function (part) {
      [-39, 39].forEach(function (z) {
        ends.push(fromWarped(part.warp, part.mean + z * part.deviation));
      });
    });
    const upper = level > 0.5, tail = upper ? 1 - level : level;
    let low = Math.min.apply(null, ends), high = Math.max.apply(null, ends);
    for (let step = 0; step < 200; step++) {
      const middle = 0.5 * low + 0.5 * high;
      if (middle <= low || middle >= high) { break; }
      const reached = sum(parts.length, function (k) {
        const z = (toWarped(parts[k].warp, middle) - parts[k].mean) / parts[k].deviation;
        return parts[k].weight * cumulative(upper ? -z : z);
      });
      if ((reached < tail) !== upper) { low = middle; } else { high = middle; }
    }
    return 0.5 * low + 0.5 * high;
  }

  /* Mean, deviation and quantiles of target d, in its unit. */
  function predictNumber(model, x, base, d, levels) {
    const parts = mixtureOf(model, x, base, groupMoments(model, x, base), d);
    const moments = parts.map(function (part) { return unwarped(part, model.constants); });
    const mean = sum(parts.length, function (k) { return parts[k].weight * moments[k].mean; });
    const variance = sum(parts.length, function (k) {
      return parts[k].weight * (moments[k].variance + Math.pow(moments[k].mean - mean, 2));
    });
    const center = model.groups.center.values[d], scale = model.groups.scale.values[d];
    return {
      mean: center + scale * mean,
      deviation: scale * Math.sqrt(variance),
      quantiles: levels.map(function (level) { return center + scale * quantile(parts, level); })
    };
  }

  function sigmoidProbability(mean, variance, constants) {
    return sum(constants.probit_slopes.length, function (k) {
      const slope = constants.probit_slopes[k], flat = Math.sqrt(1 + slope * slope * variance);
      return constants.probit_weights[k] * cumulative(slope * mean / flat);
    });
  }

  /* E[sigmoid(z_c) / sum of sigmoids] over points of a normal distribution. */
  function expectedProbabilities(outcome, mean, variance) {
    const n = mean.length, found = new Float64Array(n), points = outcome.points.values;
    outcome.weights.values.forEach(function (weight, s) {
      const logs = vector(n, function (c) {
        return logSigmoid(mean[c] + Math.sqrt(variance[c]) * points[s * n + c]);
      });
      const largest = Math.max.apply(null, logs);
      const relative = logs.map(function (value) { return Math.exp(value - largest); });
      const total = sum(n, function (c) { return relative[c]; });
      relative.forEach(function (value, c) { found[c] += weight * value / total; });
    });
    return found;
  }

  function predictClasses(model, x, base) {
    let found = null;
    groupMoments(model, x, base).forEach(function (own) {
      let p;
      if (model.outcome.kind === "binary") {
        const second = sigmoidProbability(own.mean[0], own.variance[0], model.constants);
        p = [1 - second, second];
      } else {
        p = expectedProbabilities(model.outcome, own.mean, own.variance);
      }
      found = found || vector(p.length, function () { return 0; });
      p.forEach(function (value, c) { found[c] += own.weight * value; });
    });
    return found;
  }

  /* Encoded values, standardised as in `representation/scaling.py`. */
  function standardized(model, encoded) {
    return vector(encoded.length, function (e) {
      return (0.5 * encoded[e] - 0.5 * model.center.values[e]) / model.scale.values[e] * 2;
    });
  }

  window.bowtienet = {
    read: function (structure, text) { return fillIn(structure, readNumbers(text)); },
    standardized: standardized,
    predictNumber: predictNumber,
    predictClasses: predictClasses
  };
}());
