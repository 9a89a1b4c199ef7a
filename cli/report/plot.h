#pragma once

#include <array>
#include <string>
#include <vector>

namespace fz::report {

/// One axis of a plot. A logarithmic one needs 0 < low < high, the other kind low < high.
struct Axis {
  double low = 0.0;
  double high = 1.0;
  bool is_log = false;
  std::string label;  ///< HTML

  /// Where a value stands, 0 at low and 1 at high; beyond them for values outside.
  double position(double value) const;
};

/// A label and where it stands.
struct Tick {
  double value = 0.0;
  std::string text;  ///< HTML
};

struct Ticks {
  std::vector<Tick> ticks;
  /// What belongs behind the axis label, as HTML: the factor that all texts leave out, and what was
  /// taken off where values differ in late digits only. Empty: nothing.
  std::string suffix;
};

/// Round numbers, about `n_wanted`. `only_integers` for axes that count positions.
Ticks ticksOf(const Axis& axis, int n_wanted, bool only_integers = false);

/// The same range, made wider when it is a single point.
Axis widened(double low, double high, std::string label);

/// Where things are drawn, in units of the picture.
struct PlotSize {
  double width = 380;
  double height = 250;
  double left = 60;
  double right = 22;
  double top = 12;
  double bottom = 44;
};

using Points = std::vector<std::array<double, 2>>;

/// A picture with axes as inline SVG. Colours and strokes are classes of the page's style.
class Plot {
 public:
  Plot(Axis x, Axis y, PlotSize size = {});

  double x(double value) const;
  double y(double value) const;
  const PlotSize& size() const { return size_; }
  const Axis& yAxis() const { return y_axis_; }

  void line(const Points& points, const std::string& css);
  /// A closed area.
  void area(const Points& points, const std::string& css);
  void bar(double x_low, double x_high, double value, const std::string& css);
  void marker(double x_value, double y_value, const std::string& css, const std::string& title);
  void verticalLine(double value, const std::string& css, const std::string& text);
  void horizontalLine(double value, const std::string& css, const std::string& text);
  /// Drawn as it is.
  void add(const std::string& svg) { marks_ += svg; }
  void setIntegerX() { integer_x_ = true; }

  /// `description` (plain text) is what readers of the screen hear.
  std::string svg(const std::string& description) const;

 private:
  std::string grid() const;

  Axis x_axis_;
  Axis y_axis_;
  PlotSize size_;
  bool integer_x_ = false;
  std::string marks_;
};

/// One entry of a legend: how it is drawn and what it is.
struct LegendEntry {
  std::string css;
  std::string text;  ///< HTML
  bool is_area = false;
};
std::string legend(const std::vector<LegendEntry>& entries);

}  // namespace fz::report
