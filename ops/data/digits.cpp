#include "ops/data/digits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/hash.hpp"

namespace troupe {

namespace {

struct Point {
  double x = 0, y = 0;
};

// A stroke is a line through its points, straight or smooth. Digits stand in the unit square, y
// downwards; the ways people write one digit differ in their strokes.
struct Stroke {
  bool smooth = false;
  std::vector<Point> points;
};
using Glyph = std::vector<Stroke>;

const std::array<std::vector<Glyph>, 10>& glyphs() {
  static const std::array<std::vector<Glyph>, 10> all = {{
      // 0: a ring; one that does not quite close.
      {{{true,
         {{.5, .05},
          {.22, .2},
          {.17, .5},
          {.24, .82},
          {.5, .95},
          {.77, .8},
          {.83, .5},
          {.76, .2},
          {.5, .05}}}},
       {{true,
         {{.6, .08},
          {.3, .15},
          {.18, .5},
          {.28, .85},
          {.55, .94},
          {.8, .7},
          {.78, .3},
          {.52, .1}}}}},
      // 1: a bar; with a flag; with a flag and a foot.
      {{{false, {{.5, .05}, {.5, .95}}}},
       {{false, {{.3, .25}, {.52, .05}, {.52, .95}}}},
       {{false, {{.32, .22}, {.52, .05}, {.52, .95}}}, {false, {{.3, .95}, {.74, .95}}}}},
      // 2: with a straight base; with a loop.
      {{{true, {{.2, .28}, {.32, .1}, {.55, .05}, {.78, .22}, {.7, .48}, {.42, .75}, {.2, .95}}},
        {false, {{.2, .95}, {.84, .93}}}},
       {{true,
         {{.2, .25},
          {.45, .05},
          {.76, .18},
          {.72, .45},
          {.45, .78},
          {.22, .9},
          {.22, .76},
          {.42, .78},
          {.62, .93},
          {.86, .88}}}}},
      // 3: round; with a flat top.
      {{{true, {{.2, .16}, {.5, .05}, {.76, .2}, {.68, .4}, {.44, .47}}},
        {true, {{.44, .47}, {.74, .54}, {.8, .75}, {.55, .95}, {.18, .86}}}},
       {{false, {{.22, .07}, {.78, .07}, {.45, .42}}},
        {true, {{.45, .42}, {.72, .5}, {.8, .72}, {.55, .94}, {.2, .87}}}}},
      // 4: open; closed.
      {{{false, {{.3, .06}, {.2, .55}, {.84, .55}}}, {false, {{.68, .12}, {.66, .95}}}},
       {{false, {{.64, .95}, {.64, .05}, {.15, .66}, {.86, .66}}}}},
      // 5: with a flat top; in one line.
      {{{false, {{.78, .06}, {.3, .06}, {.26, .44}}},
        {true, {{.26, .44}, {.55, .37}, {.8, .58}, {.72, .85}, {.45, .95}, {.18, .86}}}},
       {{true, {{.76, .08}, {.38, .1}, {.3, .4}, {.6, .42}, {.78, .65}, {.6, .9}, {.22, .9}}}}},
      // 6: with a round back; with a straight one.
      {{{true,
         {{.7, .06},
          {.42, .22},
          {.22, .6},
          {.32, .9},
          {.6, .94},
          {.78, .74},
          {.6, .54},
          {.34, .62},
          {.25, .74}}}},
       {{true,
         {{.56, .05},
          {.36, .38},
          {.22, .72},
          {.42, .95},
          {.7, .86},
          {.7, .62},
          {.44, .56},
          {.24, .74}}}}},
      // 7: plain; with a bar; with a hook.
      {{{false, {{.18, .08}, {.82, .08}, {.42, .95}}}},
       {{false, {{.18, .08}, {.82, .08}, {.42, .95}}}, {false, {{.34, .5}, {.76, .5}}}},
       {{true, {{.16, .22}, {.22, .08}, {.5, .1}, {.82, .08}, {.6, .45}, {.48, .95}}}}},
      // 8: in one line; two rings.
      {{{true,
         {{.68, .14},
          {.45, .05},
          {.26, .2},
          {.42, .42},
          {.68, .6},
          {.74, .82},
          {.5, .95},
          {.25, .82},
          {.34, .58},
          {.62, .4},
          {.72, .22},
          {.62, .1}}}},
       {{true, {{.5, .05}, {.28, .15}, {.3, .38}, {.5, .46}, {.71, .38}, {.72, .15}, {.5, .05}}},
        {true, {{.5, .46}, {.22, .6}, {.24, .86}, {.5, .95}, {.77, .86}, {.78, .6}, {.5, .46}}}}},
      // 9: with a round back; with a straight one.
      {{{true,
         {{.76, .24},
          {.52, .06},
          {.26, .2},
          {.28, .44},
          {.54, .5},
          {.76, .28},
          {.76, .55},
          {.66, .85},
          {.36, .94}}}},
       {{true, {{.74, .28}, {.56, .06}, {.28, .16}, {.26, .42}, {.52, .5}, {.74, .28}}},
        {false, {{.75, .2}, {.62, .95}}}}},
  }};
  return all;
}

// Bell-shaped, of deviation 1, within +-3.5.
double bell(Random& random) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += random.uniform();
  return (sum - 2) * 1.7320508075688772;
}

// Unit square to pixels: scale, slant, rotation, then position.
class Warp {
 public:
  Warp(Random& random, double strength) {
    const double angle = 0.20 * strength * bell(random);
    const double slant = 0.18 * strength * bell(random);
    const double wide = 15.0 * std::exp(0.14 * strength * bell(random));
    const double high = 18.5 * std::exp(0.10 * strength * bell(random));
    const double c = std::cos(angle), s = std::sin(angle);
    xx_ = c * wide, xy_ = (c * slant - s) * high;
    yx_ = s * wide, yy_ = (s * slant + c) * high;
    x_ = 13.5 + 1.5 * strength * bell(random);
    y_ = 13.5 + 1.3 * strength * bell(random);
  }
  Point operator()(Point p) const {
    const double u = p.x - 0.5, v = p.y - 0.5;
    return {x_ + xx_ * u + xy_ * v, y_ + yx_ * u + yy_ * v};
  }

 private:
  double xx_, xy_, yx_, yy_, x_, y_;
};

// A smooth curve through the points (Catmull and Rom's spline), as a line of many.
std::vector<Point> smoothed(const std::vector<Point>& p) {
  constexpr int kSteps = 6;
  std::vector<Point> line;
  for (std::size_t i = 0; i + 1 < p.size(); ++i) {
    const Point &a = p[i == 0 ? 0 : i - 1], &b = p[i], &c = p[i + 1],
                &d = p[std::min(i + 2, p.size() - 1)];
    for (int step = 0; step < kSteps; ++step) {
      const double t = double(step) / kSteps;
      auto at = [&](double a, double b, double c, double d) {
        return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
      };
      line.push_back({at(a.x, b.x, c.x, d.x), at(a.y, b.y, c.y, d.y)});
    }
  }
  line.push_back(p.back());
  return line;
}

// A sheet of 28 x 28 pixels that remembers the darkest ink at each.
class Paper {
 public:
  // A line with a soft edge: full ink within the width, fading over `soft` pixels beyond.
  void draw(std::span<const Point> line, double width, double soft, double ink) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      segment(line[i], line[i + 1], width / 2, soft, ink);
  }
  float& at(int x, int y) { return ink_[std::size_t(y) * kDigitSide + std::size_t(x)]; }

 private:
  static double fading(double left, double soft) { return std::clamp(left / soft, 0.0, 1.0); }

  void segment(Point a, Point b, double radius, double soft, double ink) {
    const double reach = radius + soft;
    auto pixel = [](double v) { return int(std::clamp(std::floor(v), -1.0, 28.0)); };
    const int left = std::max(0, pixel(std::min(a.x, b.x) - reach)),
              right = std::min(kDigitSide - 1, pixel(std::max(a.x, b.x) + reach) + 1),
              top = std::max(0, pixel(std::min(a.y, b.y) - reach)),
              bottom = std::min(kDigitSide - 1, pixel(std::max(a.y, b.y) + reach) + 1);
    const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    // Most pixels are surely beyond the line's reach, or surely within its width: by more than
    // rounding could turn, so that no root is needed to know.
    const double beyond = reach * reach * (1 + 1e-9), within = radius * radius * (1 - 1e-9);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const double px = x - a.x, py = y - a.y, along = px * dx + py * dy;
        const double t = along <= 0 ? 0 : along >= length2 ? 1 : along / length2;
        const double ex = px - t * dx, ey = py - t * dy, distance2 = ex * ex + ey * ey;
        if (distance2 >= beyond) continue;
        const double cover = distance2 <= within ? 1 : fading(reach - std::sqrt(distance2), soft);
        at(x, y) = std::max(at(x, y), float(ink * cover));
      }
    }
  }

  std::array<float, kDigitSide * kDigitSide> ink_{};
};

void draw_glyph(const Glyph& glyph, Random& random, const DigitStyle& style, Paper& paper) {
  const Warp warp(random, style.warp);
  const double width = random.uniform(1.0, 3.0), soft = random.uniform(0.8, 1.5);
  const double ink = random.uniform(0.7, 1.0);
  for (const Stroke& stroke : glyph) {
    std::vector<Point> points;
    for (Point p : stroke.points) {
      p.x += 0.035 * style.jitter * bell(random);
      p.y += 0.035 * style.jitter * bell(random);
      points.push_back(warp(p));
    }
    if (stroke.smooth) points = smoothed(points);
    paper.draw(points, width, soft, ink);
  }
}

// Short strokes anywhere, fainter than the digit's.
void draw_clutter(Random& random, double amount, Paper& paper) {
  const int strokes = int(random.uniform(0, 3.5 * amount));
  for (int i = 0; i < strokes; ++i) {
    const Point a{random.uniform(0, 27), random.uniform(0, 27)};
    const std::array<Point, 2> line = {
        {a, {a.x + random.uniform(-7, 7), a.y + random.uniform(-7, 7)}}};
    paper.draw(line, random.uniform(0.6, 1.6), 1, random.uniform(0.25, 0.6));
  }
}

// The next whole number, halves up, of a value in [0, 255].
std::uint8_t rounded(double value) {
  const int whole = int(value);
  return std::uint8_t(whole + int(value - whole >= 0.5));
}

}  // namespace

int draw_digit(std::uint64_t seed, std::uint64_t index, std::uint8_t* image,
               const DigitStyle& style) {
  Random random(hash_combine(mix64(seed), index));
  const int label = int(random.below(10));
  const std::vector<Glyph>& ways = glyphs()[std::size_t(label)];
  Paper paper;
  draw_clutter(random, style.clutter, paper);
  draw_glyph(ways[random.below(ways.size())], random, style, paper);
  const double grain = 0.06 * style.noise;
  for (int y = 0; y < kDigitSide; ++y) {
    for (int x = 0; x < kDigitSide; ++x) {
      const double value = paper.at(x, y) + grain * (2 * random.uniform() - 1);
      *image++ = rounded(255 * std::clamp(value, 0.0, 1.0));
    }
  }
  return label;
}

Expected<std::vector<Tensor>> digit_set(std::uint64_t seed, std::uint64_t first, std::int64_t count,
                                        const DigitStyle& style) {
  if (count < 0) return invalid_argument("a set cannot have " + std::to_string(count) + " digits");
  TROUPE_TRY(Tensor images, Tensor::make(DType::u8, Shape{count, kDigitSide, kDigitSide}));
  TROUPE_TRY(Tensor labels, Tensor::make(DType::u8, Shape{count}));
  for (std::int64_t i = 0; i < count; ++i)
    labels.mutable_data<std::uint8_t>()[i] = std::uint8_t(
        draw_digit(seed, first + std::uint64_t(i),
                   images.mutable_data<std::uint8_t>() + i * kDigitSide * kDigitSide, style));
  return std::vector<Tensor>{images, labels};
}

}  // namespace troupe
