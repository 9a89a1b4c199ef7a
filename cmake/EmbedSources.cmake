# Writes the text of HEADERS (a list of folder:name) as rows of a table into OUTPUT.
set(rows "")
set(all "")
foreach(entry IN LISTS HEADERS)
  string(REGEX MATCH "^(.*):([^:]*)$" whole "${entry}")
  set(name ${CMAKE_MATCH_2})
  file(READ "${CMAKE_MATCH_1}/${name}" text)
  string(APPEND rows "    {\"${name}\", R\"fzsource(${text})fzsource\"},\n")
  string(APPEND all "${name}${text}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#include \"backends/cuda/rtc/device_sources.h\"

namespace fz::cuda::rtc {

namespace {

const DeviceSource kSources[] = {
${rows}};

}  // namespace

std::span<const DeviceSource> deviceSources() {
  return kSources;
}

std::uint64_t deviceSourcesHash() {
  return 0x${hash}u;
}

}  // namespace fz::cuda::rtc
")
