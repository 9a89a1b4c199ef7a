#include "file_kind.h"

namespace fz::cli {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kExtract = "extract its arrays as .npy or raw files first";

struct Signature {
  std::string_view start;
  FileKind kind;
};

constexpr FileKind kNetcdf3 = {
    "a classic netCDF-3 file",
    "convert it with 'nccopy -k nc4 OLD NEW' or 'ncks -4 OLD NEW' and name a variable, NEW:/NAME"};

/// Three bytes and more: a raw field begins like one of these once in millions.
constexpr Signature kSignatures[] = {
    {"PK\x03\x04"sv, {"a zip or .npz file", kExtract}},
    {"PK\x05\x06"sv, {"a zip or .npz file without content", kExtract}},
    {"\x1f\x8b\x08"sv, {"a gzip file", kUnpack}},
    {"\x28\xb5\x2f\xfd"sv, {"a zstd file", kUnpack}},
    {"\x04\x22\x4d\x18"sv, {"a lz4 file", kUnpack}},
    {"BZh"sv, {"a bzip2 file", kUnpack}},
    {"\xfd\x37zXZ\0"sv, {"a xz file", kUnpack}},
    {"7z\xbc\xaf\x27\x1c"sv, {"a 7z file", kUnpack}},
    {"\x89PNG\r\n\x1a\n"sv, {"a PNG picture", kExtract}},
    {"\xff\xd8\xff\xe0"sv, {"a JPEG picture", kExtract}},
    {"II*\0"sv, {"a TIFF picture", kExtract}},
    {"MM\0*"sv, {"a TIFF picture", kExtract}},
    {"CDF\x01"sv, kNetcdf3},
    {"CDF\x02"sv, kNetcdf3},
    {"CDF\x05"sv, kNetcdf3},
    {"MATLAB 5.0 MAT-file"sv, {"a .mat file", "save it with -v7.3, which is HDF5, or as raw"}},
    {"SIMPLE  ="sv, {"a FITS file", kExtract}},
    {"GRIB"sv, {"a GRIB file", kExtract}},
    {"\x93NUMPY"sv, {"a .npy file by its content", "give it a name that ends in .npy"}},
};

}  // namespace

std::optional<FileKind> knownFileKind(ByteView bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.start)) {
      return signature.kind;
    }
  }
  return std::nullopt;
}

}  // namespace fz::cli
