// The range of an array that comes in pieces.
#include <memory>
#include <new>
#include <utility>
#include <variant>

#include "backends/cpu/missing.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fz/archive.h"
#include "pipeline/fill_check.h"

namespace fz {

namespace {

constexpr std::size_t kBlockValues = std::size_t{1} << 16;

/// Ends of one piece, and of all pieces before it.
template <class T>
class Ends {
 public:
  explicit Ends(const std::vector<double>& fill) {
    for (const double value : fill) {
      addFill(value, fill_);
    }
  }

  void add(const T* values, std::size_t n_values, const CpuExecutor& executor) {
    const std::size_t n_blocks = (n_values + kBlockValues - 1) / kBlockValues;
    std::vector<CountedEnds<T>> blocks(n_blocks);
    parallelFor(executor, n_blocks, [&](std::size_t block) {
      const std::size_t begin = block * kBlockValues;
      blocks[block] = endsOf(values + begin, std::min(kBlockValues, n_values - begin));
    });
    for (const CountedEnds<T>& block : blocks) {
      merge(block);
    }
  }

  const CountedEnds<T>& all() const { return all_; }

 private:
  CountedEnds<T> endsOf(const T* values, std::size_t n_values) const {
    CountedEnds<T> block;
    block.n_values = n_values;
    constexpr std::size_t kGroup = 64;  // at least one step of countWithoutNews()
    for (std::size_t i = 0; i < n_values;) {
      i += countWithoutNews(values + i, n_values - i, block.ends);
      for (const std::size_t stop = std::min(n_values, i + kGroup); i < stop; ++i) {
        if (std::find(fill_.begin(), fill_.end(), values[i]) == fill_.end()) {
          block.ends.add(values[i]);
        }
      }
    }
    if (!block.ends.isEmpty()) {
      block.n_low = countEqual(values, n_values, block.ends.low);
      block.n_high = countEqual(values, n_values, block.ends.high);
    }
    return block;
  }

  /// Counts are of the outermost values only, which no piece before had where they are new.
  void merge(const CountedEnds<T>& block) {
    all_.n_values += block.n_values;
    if (block.ends.isEmpty()) {
      return;
    }
    const auto counted = [](bool is_new, bool is_equal, std::size_t n_before, std::size_t n) {
      return is_new ? n : is_equal ? n_before + n : n_before;
    };
    const bool is_first = all_.ends.isEmpty();
    all_.n_low = counted(is_first || block.ends.low < all_.ends.low,
                         block.ends.low == all_.ends.low, all_.n_low, block.n_low);
    all_.n_high = counted(is_first || block.ends.high > all_.ends.high,
                          block.ends.high == all_.ends.high, all_.n_high, block.n_high);
    all_.ends.add(block.ends);
  }

  std::vector<T> fill_;
  CountedEnds<T> all_;
};

using AnyEnds = std::variant<Ends<float>, Ends<double>>;

AnyEnds makeEnds(DataType type, const std::vector<double>& fill) {
  FZ_REQUIRE(type == DataType::FLOAT32 || type == DataType::FLOAT64, ErrorCode::kUnsupported,
             "RangeScan: values of {}; only float and double have a range here",
             dataTypeToString(type));
  return type == DataType::FLOAT32 ? AnyEnds(Ends<float>(fill)) : AnyEnds(Ends<double>(fill));
}

}  // namespace

struct RangeScan::State {
  AnyEnds ends;
  std::unique_ptr<CpuExecutor> executor;
};

RangeScan::RangeScan(DataType type, const std::vector<double>& fill, std::size_t n_threads) try
    : state_(new State{makeEnds(type, fill), makeCpuExecutor(n_threads, defaultThreadBackend())}) {
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
RangeScan::~RangeScan() = default;
RangeScan::RangeScan(RangeScan&&) noexcept = default;
RangeScan& RangeScan::operator=(RangeScan&&) noexcept = default;

void RangeScan::add(ByteView values) try {
  std::visit(
      [&]<class T>(Ends<T>& ends) {
        FZ_REQUIRE(values.size() % sizeof(T) == 0, ErrorCode::kBadSize,
                   "RangeScan: {} bytes are no whole number of values", values.size());
        FZ_REQUIRE_ARG(reinterpret_cast<std::uintptr_t>(values.data()) % alignof(T) == 0,
                       "RangeScan: the values are not aligned");
        ends.add(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T),
                 *state_->executor);
      },
      state_->ends);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::optional<ValueRange> RangeScan::range() const {
  return std::visit(
      [](const auto& found) -> std::optional<ValueRange> {
        const auto& ends = found.all().ends;
        if (ends.isEmpty()) {
          return std::nullopt;
        }
        return ValueRange{static_cast<double>(ends.low), static_cast<double>(ends.high)};
      },
      state_->ends);
}

void RangeScan::requireWithoutFill(double error_bound) const try {
  std::visit(
      [&](const auto& found) {
        if (const auto finding = findFill(found.all(), error_bound)) {
          refuseFill(*finding);
        }
      },
      state_->ends);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
