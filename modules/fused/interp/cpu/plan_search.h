#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fused/interp/cpu/grid.h"
#include "fused/interp/cpu/search_crew.h"

/// Choosing a plan from crops of a field. All decisions are made by integers, in a fixed order, so
/// the plan depends on the values alone.
namespace fz::interp {

/// Which plans a search looks at.
enum class TuneFamily : std::uint8_t {
  kAll,      ///< levels on all axes, on one, nested ones; Lorenzo on any axes
  kLorenzo,  ///< Lorenzo on any axes, no levels
};

/// What the setting `plan` asks to search; nothing where it names a plan.
std::optional<TuneFamily> tuneFamily(std::string_view setting);

/// Codes that no plan of a search exceeds, for a field of n points.
std::uint64_t tunedCodes(const Extents& n);

struct Tuned {
  Plan plan;
  std::string reason;  ///< for people: the plans that came into question, and what they would cost
};
/// Where a search gets parts of a field from.
struct CropSource {
  bool has_gaps = false;  ///< of the field
  /// Fixed point of n points from `first` on, x fastest.
  std::function<void(const std::array<std::size_t, 3>& first, const Extents& n, std::int32_t* out)>
      read;
};
/// What a search works with.
struct Search {
  const CpuExecutor& executor;
  SearchMemory& memory;
  DataType code_type = DataType::INT16;
};
/// The plan with which a field of n points (squeezed) costs least, as far as crops of it tell.
Tuned tunePlan(const Search& search,
               const CropSource& source,
               const Extents& n,
               std::uint32_t sub_bits,
               TuneFamily family,
               std::size_t max_plan_bytes);
/// The same for a whole field in memory.
Tuned tunePlan(const Search& search,
               const Source& source,
               const Extents& n,
               std::uint32_t sub_bits,
               TuneFamily family,
               std::size_t max_plan_bytes);

}  // namespace fz::interp
