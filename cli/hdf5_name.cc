#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "failure.h"
#include "hdf5_io.h"

namespace fz::cli {

namespace {

constexpr std::string_view kSuffixes[] = {".h5", ".hdf5", ".he5", ".nc", ".nc4", ".cdf"};

}  // namespace

std::optional<Hdf5Name> hdf5Name(std::string_view path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    return std::nullopt;
  }
  for (std::size_t at = path.find(":/"); at != std::string_view::npos;
       at = path.find(":/", at + 1)) {
    const std::string_view file = path.substr(0, at);
    const bool is_named = std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                                      [&](std::string_view s) { return file.ends_with(s); });
    if (is_named || (!file.empty() && std::filesystem::is_regular_file(file, ignored))) {
      return Hdf5Name{std::string(file), std::string(path.substr(at + 1))};
    }
  }
  return std::nullopt;
}

void checkHdf5Slash(std::string_view path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) || hdf5Name(path)) {
    return;
  }
  for (const std::string_view suffix : kSuffixes) {
    const std::size_t at = path.find(std::string(suffix) + ":");
    if (at == std::string_view::npos) {
      continue;
    }
    const std::string file(path.substr(0, at + suffix.size()));
    const std::string_view dataset = path.substr(file.size() + 1);
    throw Failure(
        ExitCode::kUsage,
        fmt::format("names of datasets begin with a slash; write "
                    "'{}:/{}'{}",
                    file, dataset.empty() ? "NAME" : dataset,
                    std::filesystem::exists(file, ignored) ? hdf5Advice(file) : std::string()));
  }
}

void checkHdf5Output(std::string_view path) {
  for (const std::string_view suffix : kSuffixes) {
    if (path.ends_with(suffix)) {
      throw Failure(
          ExitCode::kUsage,
          fmt::format("'{}' would hold plain bytes under the name of an HDF5 file; use 'fz "
                      "convert' with '{}:/NAME', or another name",
                      path, path));
    }
  }
}

std::string flatName(const Hdf5Name& name) {
  std::string flat = name.file;
  for (const char c : name.dataset) {
    flat += c == '/' ? '.' : c;
  }
  return flat;
}

bool hasHdf5Signature(ByteView bytes) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  return bytes.size() >= kSignature.size() &&
         std::equal(kSignature.begin(), kSignature.end(),
                    reinterpret_cast<const char*>(bytes.data()));
}

#if !FZ_HAVE_HDF5

[[noreturn]] void failNotBuilt(const Hdf5Name& name) {
  throw Failure(
      ExitCode::kUsage,
      fmt::format("'{}:{}' is an HDF5 dataset, and this fz was built without HDF5, as that of the "
                  "Python wheel is; export the dataset to .npy (h5py and numpy.save do), "
                  "or take an fz that was built where HDF5 is installed",
                  name.file, name.dataset));
}

bool isHdf5Built() {
  return false;
}
std::string hdf5Advice(const std::string& /*file*/) {
  return "; this fz was built without HDF5";
}
Hdf5Dataset readHdf5(const Hdf5Name& name, Progress* /*progress*/) {
  failNotBuilt(name);
}
std::uint64_t hdf5DatasetBytes(const Hdf5Name& name) {
  failNotBuilt(name);
}
struct Hdf5Reader::Open {};
Hdf5Reader::Hdf5Reader(const Hdf5Name& name) {
  failNotBuilt(name);
}
Hdf5Reader::~Hdf5Reader() = default;
void Hdf5Reader::read(const std::vector<std::size_t>& /*start*/,
                      const std::vector<std::size_t>& /*count*/,
                      MutableByteView /*out*/) const {
  failNotBuilt(name_);
}
void writeHdf5(const Hdf5Name& name,
               DataType /*type*/,
               const std::vector<std::size_t>& /*shape*/,
               ByteView /*bytes*/,
               std::span<const double> /*fill*/) {
  failNotBuilt(name);
}

#endif

}  // namespace fz::cli
