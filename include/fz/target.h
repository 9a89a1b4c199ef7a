#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "fz/archive.h"
#include "fz/error.h"
#include "fz/host_api.h"

/// Asking for a result instead of a bound.
namespace fz {

/// What a frame is to reach.
struct ResultTarget {
  enum class Kind {
    kPsnr,   ///< at least this many decibels, over the values that are not missing
    kRatio,  ///< at most 1 / value of the original bytes, header included
  };
  Kind kind = Kind::kPsnr;
  double value = 0.0;
};

/// "psnr" or "ratio", as bounds are written: psnr:80.
std::string_view targetKindName(ResultTarget::Kind kind);
std::optional<ResultTarget::Kind> targetKindFromName(std::string_view text);

/// The bound that reaches a target.
struct TargetBound {
  double absolute = 0.0;  ///< of every value
  double reached = 0.0;   ///< what the frame with it has; infinite PSNR: nothing was lost
  std::size_t n_trials = 0;
};

/// No bound reaches the target. Its code is kTarget.
class TargetError : public Error {
 public:
  TargetError(const ResultTarget& target, const TargetBound& best);
  /// The nearest that was reached, with the bound that did it.
  const TargetBound& best() const noexcept { return best_; }

 private:
  TargetBound best_;
};

/// Finds the largest absolute bound with which compress() of these values reaches a PSNR, or a
/// small one with which it reaches a ratio, by at most five trials, the first of large fields on a
/// part. A ratio is mostly met within 4 %; one that is far above the usual may be exceeded by much
/// more. The bound of `options` plays no role. What it returns was tried on all values, but for
/// bounds so small that the PSNR follows from them. The same on every backend and for any number of
/// threads. Throws TargetError, InvalidArgument, FillValueError where a fill value that nobody
/// declared sets the range (CompressOptions::suspect_fill), and as compress() does.
TargetBound findBound(DataType type,
                      ByteView values,
                      const ResultTarget& target,
                      const CompressOptions& options = {});

/// The same for an array of any size that becomes an archive of chunks: `options` are those of its
/// ArchiveWriter, with known extents, and `read` fills in the values of a box, as for
/// ArchiveWriter::putAll(). Memory is that of the writer. The range of all values is found first,
/// and what it returns was tried on the whole archive, so `read` goes through the array two to five
/// times.
TargetBound findBound(DataType type,
                      const ArchiveOptions& options,
                      const ResultTarget& target,
                      const std::function<void(const Box& box, MutableByteView values)>& read);

/// The same for an array in memory, in the order of memory.
TargetBound findBound(DataType type,
                      ByteView values,
                      const ResultTarget& target,
                      const ArchiveOptions& options);

}  // namespace fz
