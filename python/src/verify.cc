#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "fz/bound_kind.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "host_buffer.h"
#include "pipeline/bound_check.h"
#include "registry.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

nb::tuple describe(const KeptCount& count) {
  return nb::make_tuple(count.n_kept, count.n_values);
}

nb::dict describe(const CheckReport& report) {
  nb::dict row;
  row["rule"] = toPython(std::string_view(ruleText(report.rule)));
  row["n_values"] = report.n_values;
  row["n_violations"] = report.n_violations;
  nb::object first = nb::none();
  if (!report.passed()) {
    first = nb::make_tuple(report.first_index, report.first_original, report.first_decoded);
  }
  row["first_violation"] = first;
  row["max_error"] = report.stats.max_error;
  row["max_error_index"] = report.stats.max_error_index;
  row["mse"] = report.stats.mse;
  row["psnr"] = report.psnr();
  row["nrmse"] = report.nrmse();
  row["value_range"] = report.stats.value_range;
  row["nan_kept"] = describe(report.nan);
  row["inf_kept"] = describe(report.infinity);
  row["negative_zero_kept"] = describe(report.negative_zero);
  row["fill_kept"] = describe(report.fill);
  return row;
}

BoundRule ruleFor(const std::optional<std::string>& kind,
                  double value,
                  ByteView frame,
                  ByteView original) {
  const FrameInfo info = inspect(frame);
  if (!kind) {
    const std::optional<BoundRule> rule = ruleOfFrame(info);
    if (!rule) {
      throw InvalidArgument("verify: the frame states no bound; give one");
    }
    return *rule;
  }
  if (const std::optional<ErrorBoundMode> mode = boundKindFromName(*kind)) {
    return ruleOfRequest({*mode, value}, info.type, original,
                         info.missing ? info.missing->fill : std::vector<double>{});
  }
  throw InvalidArgument("verify: no bound of kind '" + *kind + "'");
}

}  // namespace

void bindVerify(nb::module_& module) {
  module.def(
      "check_values",
      [](nb::handle frame, nb::handle original, nb::handle decoded,
         const std::optional<std::string>& kind, double value) {
        const HostBuffer frame_bytes(frame, HostBuffer::Access::kRead);
        const HostBuffer original_bytes(original, HostBuffer::Access::kRead);
        const HostBuffer decoded_bytes(decoded, HostBuffer::Access::kRead);
        if (original_bytes.size() != decoded_bytes.size()) {
          throw InvalidArgument("verify: the arrays differ in length");
        }
        CheckReport report;
        {
          const nb::gil_scoped_release release;
          const DataType type = inspect(frame_bytes.bytes()).type;
          report = checkValues(type, original_bytes.bytes(), decoded_bytes.bytes(),
                               ruleFor(kind, value, frame_bytes.bytes(), original_bytes.bytes()));
        }
        return describe(report);
      },
      nb::arg("frame"), nb::arg("original"), nb::arg("decoded"), nb::arg("kind").none(),
      nb::arg("value"));
}

}  // namespace fz::python
