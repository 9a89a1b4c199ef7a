#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "archive.h"
#include "convert.h"
#include "fz/bound_kind.h"
#include "fz/host_api.h"
#include "fz/recorded_params.h"
#include "host_buffer.h"
#include "registry.h"

namespace fz::python {

namespace nb = nanobind;

nb::object boundToPython(const std::optional<BoundInfo>& bound) {
  if (!bound) {
    return nb::none();
  }
  nb::dict row;
  row["kind"] = toPython(boundKindName(*bound));
  row["requested"] = bound->requested;
  row["absolute"] = isPointwise(*bound) ? nb::none() : nb::object(nb::float_(bound->absolute));
  return row;
}

namespace {

nb::dict describe(const FrameStageInfo& stage) {
  nb::dict row;
  row["id"] = stage.id;
  row["version"] = stage.version;
  row["name"] = toPython(std::string_view(stage.name));
  row["types"] = typesToPython(stage.types);
  nb::dict params;
  for (const auto& [key, value] : recordedParams(stage)) {
    params[toPython(std::string_view(key))] = toPython(value);
  }
  row["params"] = params;
  return row;
}

nb::dict describe(const SegmentInfo& segment) {
  nb::dict row;
  row["stage"] = toPython(std::string_view(segment.stage));
  row["port"] = toPython(std::string_view(segment.port));
  row["type"] = toPython(dataTypeToString(segment.type));
  row["bytes"] = segment.n_bytes;
  return row;
}

nb::object describe(const std::optional<MissingInfo>& missing) {
  if (!missing) {
    return nb::none();
  }
  nb::dict row;
  row["count"] = missing->n_missing;
  row["filled"] = missing->n_filled;
  nb::list fill;
  for (const double value : missing->fill) {
    fill.append(value);
  }
  row["fill"] = nb::tuple(fill);
  return row;
}

nb::dict describe(const FrameInfo& info) {
  nb::dict row;
  row["format"] =
      toPython(std::string_view(fmt::format("{}.{}", info.version_major, info.version_minor)));
  row["type"] = toPython(dataTypeToString(info.type));
  row["shape"] = shapeToPython(info.extents);
  row["original_bytes"] = info.original_bytes;
  row["frame_bytes"] = info.frameBytes();
  row["header_bytes"] = info.header_bytes;
  row["payload_bytes"] = info.payload_bytes;
  row["ratio"] = info.ratio();
  row["bound"] = boundToPython(info.bound);
  row["lossless"] = info.lossless;
  row["missing"] = describe(info.missing);
  nb::list stages;
  for (const FrameStageInfo& stage : info.stages) {
    stages.append(describe(stage));
  }
  row["stages"] = stages;
  nb::list segments;
  for (const SegmentInfo& segment : info.segments) {
    segments.append(describe(segment));
  }
  row["segments"] = segments;
  return row;
}

}  // namespace

void bindInspect(nb::module_& module) {
  module.def(
      "inspect",
      [](nb::handle frame) {
        const HostBuffer bytes(frame, HostBuffer::Access::kRead);
        return describe(inspect(bytes.bytes()));
      },
      nb::arg("frame"));
  module.def(
      "inspect_file", [](const std::string& path) { return describe(inspectFile(path)); },
      nb::arg("path"));
}

}  // namespace fz::python
