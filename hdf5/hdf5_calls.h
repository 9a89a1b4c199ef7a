#pragma once

#include <cstddef>
#include <cstdint>

/// HDF5 as the filter sees it: types of its C interface from 1.10 on, and functions that are looked
/// up in the copy of HDF5 that called. Nothing is linked, so that the same file serves serial and
/// parallel HDF5, and Python modules that bring their own.
namespace fz::hdf5 {

// Names and values of HDF5's own headers; a test compares them with those.
using Hid = std::int64_t;
constexpr int kFilterClassVersion = 1;      // H5Z_CLASS_T_VERS
constexpr unsigned kFlagOptional = 0x0001;  // H5Z_FLAG_OPTIONAL
constexpr unsigned kFlagReverse = 0x0100;   // H5Z_FLAG_REVERSE
constexpr int kPluginTypeFilter = 0;        // H5PL_TYPE_FILTER
constexpr int kClassInteger = 0;            // H5T_INTEGER
constexpr int kClassFloat = 1;              // H5T_FLOAT
constexpr int kClassBitfield = 4;           // H5T_BITFIELD
constexpr int kClassEnum = 8;               // H5T_ENUM
constexpr int kOrderLittleEndian = 0;       // H5T_ORDER_LE
constexpr int kFillUserDefined = 2;         // H5D_FILL_VALUE_USER_DEFINED

/// H5Z_class2_t
struct FilterClass {
  int version;
  int id;
  unsigned encoder_present;
  unsigned decoder_present;
  const char* name;
  int (*can_apply)(Hid, Hid, Hid);
  int (*set_local)(Hid, Hid, Hid);
  std::size_t (*filter)(unsigned flags,
                        std::size_t n_values,
                        const unsigned* values,
                        std::size_t n_bytes,
                        std::size_t* buffer_bytes,
                        void** buffer);
};

/// Functions of one copy of HDF5; null where it has none of that name.
struct Calls {
  void* (*allocate)(std::size_t, bool);
  int (*free)(void*);
  int (*get_filter_by_id)(
      Hid, int, unsigned*, std::size_t*, unsigned*, std::size_t, char*, unsigned*);
  int (*get_n_filters)(Hid);
  int (*get_filter)(
      Hid, unsigned, unsigned*, std::size_t*, unsigned*, std::size_t, char*, unsigned*);
  int (*modify_filter)(Hid, int, unsigned, std::size_t, const unsigned*);
  int (*get_chunk)(Hid, int, std::uint64_t*);
  int (*fill_defined)(Hid, int*);
  int (*get_fill)(Hid, Hid, void*);
  int (*get_class)(Hid);
  std::size_t (*get_size)(Hid);
  int (*get_order)(Hid);
  int (*get_version)(unsigned*, unsigned*, unsigned*);
  int (*push_error)(Hid, const char*, const char*, unsigned, Hid, Hid, Hid, const char*, ...);
  const Hid* error_class;
  const Hid* error_major;
  const Hid* error_minor;

  bool canDescribeDatasets() const;
  /// From HDF5's allocator, so that HDF5 can free it; null when there is no memory.
  void* takeMemory(std::size_t n_bytes) const;
  void giveMemory(void* memory) const;
  /// Onto HDF5's error stack, or to standard error where that cannot be reached.
  void pushError(const char* function, const char* message) const;
};

/// The HDF5 that the code at this address belongs to.
const Calls& callsOf(const void* code_address);

}  // namespace fz::hdf5
