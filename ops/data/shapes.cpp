#include "ops/data/shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/hash.hpp"

namespace troupe {
namespace {

struct Color {
  double red = 0, green = 0, blue = 0;
};

// Whether a point belongs to a shape, which stands around the origin within radius 1.
using Inside = bool (*)(double x, double y);

bool disk(double x, double y) { return x * x + y * y < 0.8 * 0.8; }
bool ring(double x, double y) {
  const double r2 = x * x + y * y;
  return r2 < 0.9 * 0.9 && r2 > 0.5 * 0.5;
}
bool square(double x, double y) { return std::abs(x) < 0.7 && std::abs(y) < 0.7; }
bool triangle(double x, double y) {
  return y < 0.55 && 0.8660254037844386 * std::abs(x) - 0.5 * y < 0.5;
}
bool cross(double x, double y) {
  x = std::abs(x), y = std::abs(y);
  return std::max(x, y) < 0.9 && std::min(x, y) < 0.27;
}
// Five points: between two of them the edge is a straight line from radius 1 to 0.42.
bool star(double x, double y) {
  constexpr double kPoint = 2 * std::numbers::pi / 5, kInner = 0.42;
  double angle = std::fmod(std::atan2(y, x) + 4 * std::numbers::pi, kPoint);
  angle = std::min(angle, kPoint - angle);  // from the nearest point
  const double r = std::hypot(x, y), u = r * std::cos(angle), v = r * std::sin(angle);
  const double inner_u = kInner * std::cos(kPoint / 2), inner_v = kInner * std::sin(kPoint / 2);
  return (u - 1) * inner_v - v * (inner_u - 1) < 0;
}
bool bars(double x, double y) {
  return std::abs(y) < 0.85 && std::abs(x) > 0.22 && std::abs(x) < 0.62;
}
bool crescent(double x, double y) {
  const double u = x - 0.42;
  return x * x + y * y < 0.9 * 0.9 && u * u + y * y > 0.68 * 0.68;
}
bool corner(double x, double y) {
  return std::max(std::abs(x), std::abs(y)) < 0.75 && std::min(x + 0.75, y + 0.75) < 0.5;
}
bool hourglass(double x, double y) {
  return std::abs(y) < 0.85 && std::abs(x) < 0.8 * std::abs(y) + 0.06;
}

constexpr std::array<Inside, 10> kShapes = {disk, ring, square,   triangle, cross,
                                            star, bars, crescent, corner,   hourglass};

// From pixels to where a shape stands around the origin: moved, turned, squeezed.
class Place {
 public:
  Place(Random& random, double smallest, double largest) {
    const double angle = random.uniform(0, 2 * std::numbers::pi);
    const double size = random.uniform(smallest, largest);
    const double squeeze = random.uniform(0.8, 1.25);
    const double room = std::max(1.0, kShapeSide / 2.0 - 0.85 * size);
    x_ = kShapeSide / 2.0 + random.uniform(-room, room);
    y_ = kShapeSide / 2.0 + random.uniform(-room, room);
    const double c = std::cos(angle), s = std::sin(angle);
    xx_ = c / (size * squeeze), xy_ = s / (size * squeeze);
    yx_ = -s * squeeze / size, yy_ = c * squeeze / size;
  }
  bool covers(Inside inside, double x, double y) const {
    const double u = x - x_, v = y - y_;
    return inside(xx_ * u + xy_ * v, yx_ * u + yy_ * v);
  }

 private:
  double x_, y_, xx_, xy_, yx_, yy_;
};

Color any_color(Random& random) { return {random.uniform(), random.uniform(), random.uniform()}; }

// One that can be told from `other`: in brightness, by at least a quarter of the range.
Color color_against(Random& random, const Color& other) {
  auto brightness = [](const Color& c) { return 0.3 * c.red + 0.59 * c.green + 0.11 * c.blue; };
  for (;;) {
    const Color color = any_color(random);
    if (std::abs(brightness(color) - brightness(other)) > 0.25) return color;
  }
}

Color mixed(const Color& a, const Color& b, double share) {
  return {a.red + share * (b.red - a.red), a.green + share * (b.green - a.green),
          a.blue + share * (b.blue - a.blue)};
}

class Picture {
 public:
  // A color that turns into another one from one side to the other.
  void fill(Random& random, const Color& from, const Color& to) {
    const double angle = random.uniform(0, 2 * std::numbers::pi);
    const double dx = std::cos(angle) / kShapeSide, dy = std::sin(angle) / kShapeSide;
    for (int y = 0; y < kShapeSide; ++y)
      for (int x = 0; x < kShapeSide; ++x)
        at(x, y) = mixed(from, to, 0.5 + dx * (x - kShapeSide / 2) + dy * (y - kShapeSide / 2));
  }
  // With soft edges: a pixel takes the share of four points in it that the shape covers.
  void draw(Inside inside, const Place& place, const Color& color, double opacity) {
    for (int y = 0; y < kShapeSide; ++y) {
      for (int x = 0; x < kShapeSide; ++x) {
        int covered = 0;
        for (int i = 0; i < 4; ++i)
          covered += place.covers(inside, x + 0.25 + 0.5 * (i & 1), y + 0.25 + 0.5 * (i >> 1));
        if (covered > 0) at(x, y) = mixed(at(x, y), color, opacity * covered / 4);
      }
    }
  }
  Color& at(int x, int y) { return pixels_[std::size_t(y * kShapeSide + x)]; }

 private:
  std::array<Color, kShapeSide * kShapeSide> pixels_;
};

std::uint8_t as_byte(double value) {
  return std::uint8_t(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

}  // namespace

int draw_shape(std::uint64_t seed, std::uint64_t index, std::uint8_t* image) {
  Random random(hash_combine(mix64(seed), index));
  const int label = int(random.below(kShapes.size()));
  Picture picture;
  const Color ground = any_color(random);
  picture.fill(random, ground, mixed(ground, any_color(random), 0.4));
  for (std::uint64_t blots = random.below(4); blots > 0; --blots) {
    const Place place(random, 2, 4.5);
    picture.draw(disk, place, any_color(random), 0.35);
  }
  const Place place(random, 7.5, 13);
  picture.draw(kShapes[std::size_t(label)], place, color_against(random, ground), 1);
  const double grain = random.uniform(0, 0.12);
  for (int y = 0; y < kShapeSide; ++y) {
    for (int x = 0; x < kShapeSide; ++x) {
      const Color& c = picture.at(x, y);
      for (double value : {c.red, c.green, c.blue})
        *image++ = as_byte(value + grain * (2 * random.uniform() - 1));
    }
  }
  return label;
}

}  // namespace troupe
