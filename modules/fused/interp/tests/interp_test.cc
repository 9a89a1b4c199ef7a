#include <gtest/gtest.h>

#include "fused/interp/interp_stage.h"
